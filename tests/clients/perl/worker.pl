# Perl's DBD::SQLite, of the system's SQLite, which knows nothing of waldio, under LD_PRELOAD (the protocol is in ../driver.py).
#
#     worker.pl PRELOAD VERB DATABASE LIBRARY
#
# An empty LIBRARY means without PRELOAD.
use strict;
use warnings;
use DBI;

my ($preload, $verb, $database, $library) = @ARGV;
if ($library && !$ENV{LD_PRELOAD}) {
    $ENV{LD_PRELOAD} = $preload;
    exec $^X, $0, @ARGV or die $!;
}

$| = 1;
my $db = DBI->connect("dbi:SQLite:dbname=$database", "", "", { RaiseError => 1 });
if ($verb eq "insert") {
    $db->do($_) for "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL",
        "CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)";
    my $insert = $db->prepare("INSERT INTO t(value) VALUES (hex(randomblob(50)))");
    while (1) {
        $insert->execute;
        print "ack ", $db->last_insert_id("", "", "", ""), "\n";
    }
}
my ($count, $largest) = $db->selectrow_array("SELECT count(*), max(n) FROM t");
print "count $count\nmax $largest\n";
print "integrity ", $db->selectrow_array("PRAGMA integrity_check"), "\n";
# For SQLite alone it is an unknown pragma: no row.
my ($told) = $db->selectrow_array("PRAGMA waldio");
print "waldio ", (defined $told && $told =~ /^active:/ ? 1 : 0), "\n";
$db->disconnect;
