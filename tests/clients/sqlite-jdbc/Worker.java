// Xerial's sqlite-jdbc as a client of waldio (the protocol is in ../driver.py).
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.sqlite.SQLiteConfig;

class Worker {
    static String one(Connection connection, String query) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet row = statement.executeQuery(query)) {
            row.next();
            return row.getString(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        String verb = arguments[0], file = arguments[1], library = arguments[2];
        if (!library.isEmpty()) {
            SQLiteConfig config = new SQLiteConfig();
            config.enableLoadExtension(true);
            try (Connection loader = DriverManager.getConnection("jdbc:sqlite::memory:", config.toProperties());
                    PreparedStatement load = loader.prepareStatement("SELECT load_extension(?)")) {
                load.setString(1, library);
                load.executeQuery().close();
            }
        }
        try (Connection connection = DriverManager.getConnection("jdbc:sqlite:" + file)) {
            if (verb.equals("insert")) {
                insertForEver(connection);
            }
            System.out.println("count " + one(connection, "SELECT count(*) FROM t"));
            System.out.println("max " + one(connection, "SELECT max(n) FROM t"));
            System.out.println("integrity " + one(connection, "PRAGMA integrity_check"));
            String status = library.isEmpty() ? "0" : one(connection, "SELECT count(*) FROM waldio_status WHERE name = 'this_connection' AND value LIKE 'active:%'");
            System.out.println("waldio " + status);
        }
    }

    static void insertForEver(Connection connection) throws Exception {
        FileOutputStream out = new FileOutputStream(FileDescriptor.out);
        one(connection, "PRAGMA journal_mode=WAL");
        try (Statement statement = connection.createStatement()) {
            statement.execute("PRAGMA synchronous=FULL");
            statement.execute("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, value TEXT)");
        }
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO t(value) VALUES (hex(randomblob(50)))")) {
            while (true) {
                insert.executeUpdate();
                out.write(("ack " + one(connection, "SELECT last_insert_rowid()") + "\n").getBytes());
            }
        }
    }
}
