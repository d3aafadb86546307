//! A program as text: a head that says who takes part, then one act a line.
//!
//! ```text
//! page = 1024
//! A = 1 waldio app.db waldio_persist=fua       connection A: process 1, opens app.db through waldio with these options
//! B = 2 stock app.db                           connection B: a process that never loaded waldio
//! A> INSERT INTO t VALUES (1, 2, 3)            SQL, whose rows and errors are compared with stock's
//! A? SELECT * FROM waldio_status               SQL, on the side with waldio alone, compared with nothing
//! A! SELECT count(*) FROM t                    SQL that answers as stock does also under a hardship
//! A: close                                     an order to a connection (`engine::order`)
//! 1: kill                                      something that befalls a process (`engine::befall`)
//! *: replace app.db                            something that befalls the files (`engine::world`)
//! ```

use std::fmt;

/// One connection of the cast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Its process.
    pub process: usize,
    /// Whether waldio is under it; on the stock side it never is.
    pub waldio: bool,
    /// The database's file name.
    pub database: String,
    /// Parameters of its URI.
    pub parameters: String,
}

/// Who acts, or what is acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// A connection, by its place in the cast.
    Connection(usize),
    /// A process, from 1.
    Process(usize),
    /// The files and all processes.
    World,
}

/// When an answer must be stock's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// `>`: up to the first hardship.
    Usually,
    /// `!`
    Always,
    /// `?`: it runs on the side with waldio alone.
    Never,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A statement.
    Sql {
        /// The connection.
        who: usize,
        /// What it runs.
        sql: String,
        /// The mark behind the letter.
        compared: Compared,
    },
    /// Anything else.
    Order(Actor, String),
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// PRAGMA page_size.
    pub page_bytes: u32,
    /// Bytes that each page reserves.
    pub reserved_bytes: u8,
    /// Every process belongs to a user without rights.
    pub nobody: bool,
    /// The connections.
    pub cast: Vec<Role>,
    /// What happens.
    pub acts: Vec<Act>,
}

impl Program {
    /// The program that `text` is. Lines may be indented; empty ones and those that begin with `#` mean nothing.
    /// # Panics
    /// Where a line is none.
    pub fn parse(text: &str) -> Program {
        let mut program = Program { page_bytes: 1024, ..Program::default() };
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            program.take(line).unwrap_or_else(|| panic!("not a line of a program: {line:?}"));
        }
        program
    }

    fn take(&mut self, line: &str) -> Option<()> {
        if let Some((name, value)) = line.split_once(" = ")
            && !name.contains([' ', '>', ':', '?', '!'])
        {
            match name {
                "page" => self.page_bytes = value.parse().ok()?,
                "reserved" => self.reserved_bytes = value.parse().ok()?,
                "user" => self.nobody = value == "nobody",
                _ => self.cast.push(role(value)?),
            }
            return Some(());
        }
        let (name, mark) = (line.get(..1)?, line.get(1..2)?);
        let rest = line.get(2..)?.trim().to_owned();
        let actor = match name.chars().next()? {
            '*' => Actor::World,
            digit @ '1'..='9' => Actor::Process(usize::try_from(digit.to_digit(10)?).ok()?),
            letter @ 'A'..='H' => {
                Actor::Connection(usize::try_from(u32::from(letter) - u32::from('A')).ok()?)
            }
            _ => return None,
        };
        let act = match (actor, mark) {
            (Actor::Connection(who), ">") => Act::Sql { who, sql: rest, compared: Compared::Usually },
            (Actor::Connection(who), "!") => Act::Sql { who, sql: rest, compared: Compared::Always },
            (Actor::Connection(who), "?") => Act::Sql { who, sql: rest, compared: Compared::Never },
            (actor, ":") => Act::Order(actor, rest),
            _ => return None,
        };
        self.acts.push(act);
        Some(())
    }

    /// How many processes it has.
    pub fn processes(&self) -> usize {
        self.cast.iter().map(|role| role.process).max().unwrap_or(1)
    }

    /// Names of the databases.
    pub fn databases(&self) -> Vec<String> {
        let mut names: Vec<String> = self.cast.iter().map(|role| role.database.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Whether the log has a layout that stock SQLite does not read.
    pub fn is_embedded(&self) -> bool {
        self.cast.iter().any(|role| role.parameters.contains("embedded"))
    }

    /// Whether a connection, or its process, does something.
    pub fn uses(&self, who: usize) -> bool {
        let process = self.cast[who].process;
        self.acts.iter().any(|act| match act {
            Act::Sql { who: other, .. } | Act::Order(Actor::Connection(other), _) => *other == who,
            Act::Order(Actor::Process(other), _) => *other == process,
            Act::Order(Actor::World, _) => false,
        })
    }

    /// Whether an act of this kind is in it.
    pub fn has(&self, order: &str) -> bool {
        self.acts.iter().any(|act| matches!(act, Act::Order(_, words) if words.starts_with(order)))
    }

    /// Whether anybody says this to SQLite.
    pub fn says(&self, begins: &str) -> bool {
        self.acts.iter().any(|act| matches!(act, Act::Sql { sql, .. } if sql.starts_with(begins)))
    }
}

fn role(value: &str) -> Option<Role> {
    let mut words = value.split_whitespace();
    let process = words.next()?.parse().ok()?;
    let waldio = match words.next()? {
        "waldio" => true,
        "stock" => false,
        _ => return None,
    };
    let database = words.next()?.to_owned();
    let parameters = words.next().unwrap_or_default().to_owned();
    Some(Role { process, waldio, database, parameters })
}

/// The letter of a connection.
pub fn letter(who: usize) -> char {
    char::from(b'A' + u8::try_from(who).expect("few connections"))
}

impl fmt::Display for Act {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Sql { who, sql, compared } => {
                let mark = match compared {
                    Compared::Usually => '>',
                    Compared::Always => '!',
                    Compared::Never => '?',
                };
                write!(formatter, "{}{mark} {sql}", letter(*who))
            }
            Act::Order(Actor::Connection(who), words) => write!(formatter, "{}: {words}", letter(*who)),
            Act::Order(Actor::Process(process), words) => write!(formatter, "{process}: {words}"),
            Act::Order(Actor::World, words) => write!(formatter, "*: {words}"),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "page = {}", self.page_bytes)?;
        if self.reserved_bytes > 0 {
            writeln!(formatter, "reserved = {}", self.reserved_bytes)?;
        }
        if self.nobody {
            writeln!(formatter, "user = nobody")?;
        }
        for (who, role) in self.cast.iter().enumerate() {
            let side = if role.waldio { "waldio" } else { "stock" };
            let Role { process, database, parameters, .. } = role;
            writeln!(
                formatter,
                "{}",
                format!("{} = {process} {side} {database} {parameters}", letter(who)).trim_end()
            )?;
        }
        self.acts.iter().try_for_each(|act| writeln!(formatter, "{act}"))
    }
}
