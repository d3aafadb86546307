<?php
// PHP's PDO, of the system's SQLite, which knows nothing of waldio, under LD_PRELOAD (the protocol is in ../driver.py).
//
//     worker.php PRELOAD VERB DATABASE LIBRARY
//
// An empty LIBRARY means without PRELOAD.
[, $preload, $verb, $database, $library] = $argv;
if ($library && !getenv("LD_PRELOAD")) {
    pcntl_exec(PHP_BINARY, $argv, ["LD_PRELOAD" => $preload] + getenv());
    exit(3);
}

$db = new PDO("sqlite:$database");
$db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
if ($verb === "insert") {
    $db->query("PRAGMA journal_mode=WAL")->fetchAll();
    $db->exec("PRAGMA synchronous=FULL");
    $db->exec("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)");
    $insert = $db->prepare("INSERT INTO t(value) VALUES (hex(randomblob(50)))");
    while (true) {
        $insert->execute();
        fwrite(STDOUT, "ack {$db->lastInsertId()}\n");
    }
}
[$count, $largest] = $db->query("SELECT count(*), max(n) FROM t")->fetch(PDO::FETCH_NUM);
$integrity = $db->query("PRAGMA integrity_check")->fetchColumn();
// For SQLite alone it is an unknown pragma: no row.
$told = (string) $db->query("PRAGMA waldio")->fetchColumn();
echo "count $count\nmax $largest\nintegrity $integrity\nwaldio " . (int) str_starts_with($told, "active:") . "\n";
