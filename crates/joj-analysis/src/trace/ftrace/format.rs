//! What tracefs says of a record's bytes: `events/SYSTEM/EVENT/format` and `events/header_page`.
//!
//! ```text
//! name: block_rq_issue
//! ID: 2104
//! format:
//!     field:dev_t dev;    offset:8;   size:4; signed:0;
//! ```
//!
//! Kernels differ in offsets, sizes and in which fields there are: everything is looked up by its name.
//! Source: the kernel's Documentation/trace/events.rst, section 3.

use crate::trace::ftrace::error::FtraceError;

/// Where a field lies in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name, without brackets.
    pub name: String,
    /// Byte of the record at which it begins.
    pub offset: usize,
    /// Its length in bytes.
    pub size: usize,
    /// True for a number below zero where its highest bit is set.
    pub signed: bool,
    /// True where the field holds the place and the length of the text, not the text (`__data_loc`).
    pub elsewhere: bool,
}

/// An event's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// `block_rq_issue`
    pub name: String,
    /// What a record of it begins with (`common_type`).
    pub number: u16,
    /// The record's fields, with those that all events have.
    pub fields: Vec<Field>,
}

impl Format {
    /// Reads the text of a `format` file.
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, FtraceError> {
        let line = |head: &str| text.lines().find_map(|line| line.strip_prefix(head)).map(str::trim);
        let name = line("name:").filter(|name| !name.is_empty()).ok_or(FtraceError::NoName)?;
        let number = line("ID:").and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| FtraceError::NoNumber(name.to_owned()))?;
        Ok(Self { name: name.to_owned(), number, fields: text.lines().filter_map(field).collect() })
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// `field:char rwbs[10]; offset:34; size:10; signed:0;`
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declaration = parts.next()?.trim_start();
    let mut number = |head: &str| parts.next()?.strip_prefix(head)?.trim().parse::<usize>().ok();
    let (offset, size) = (number("offset:")?, number("size:")?);
    // Kernels before 2.6.38 do not say.
    let signed = number("signed:") == Some(1);
    let name = declaration.rsplit([' ', '*']).next()?.split('[').next()?;
    (!name.is_empty()).then(|| Field {
        name: name.to_owned(),
        offset,
        size,
        signed,
        elsewhere: declaration.starts_with("__data_loc"),
    })
}

impl Field {
    /// The field as a number, its sign spread over all 64 bits; `None` where the record is too short or it is no number.
    pub fn number(&self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        // Nearly all of them are of these sizes, and read for each record.
        match *bytes {
            [a, b, c, d] if self.signed => {
                return Some(i64::from(i32::from_le_bytes([a, b, c, d])).cast_unsigned());
            }
            [a, b, c, d] => return Some(u64::from(u32::from_le_bytes([a, b, c, d]))),
            [a, b, c, d, e, f, g, h] => return Some(u64::from_le_bytes([a, b, c, d, e, f, g, h])),
            _ => {}
        }
        if bytes.is_empty() || bytes.len() > 8 {
            return None;
        }
        let negative = self.signed && bytes[bytes.len() - 1] & 0x80 != 0;
        let mut whole = [if negative { 0xff } else { 0 }; 8];
        whole[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(whole))
    }

    /// The field's bytes, wherever they lie; empty where the record is too short.
    pub fn bytes<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let (start, length) = if self.elsewhere {
            let place = self.number(record).unwrap_or(0);
            // The lower half is the offset from the record's beginning, the upper one the length.
            ((place & 0xffff) as usize, (place >> 16 & 0xffff) as usize)
        } else {
            (self.offset, self.size)
        };
        record.get(start..start.saturating_add(length)).unwrap_or(&[])
    }

    /// The field's text, up to the first zero byte.
    pub fn text<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let bytes = self.bytes(record);
        bytes.split(|byte| *byte == 0).next().unwrap_or(bytes)
    }
}

/// Where the parts of a ring buffer's page lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLayout {
    /// Where the number of bytes in use and its flags stand.
    pub commit_offset: usize,
    /// Its length: 8, on 32-bit kernels 4.
    pub commit_size: usize,
    /// Where the records begin.
    pub data_offset: usize,
    /// How many bytes of records fit in.
    pub data_size: usize,
}

impl Default for PageLayout {
    /// That of 64-bit kernels with pages of 4 KiB.
    fn default() -> Self {
        Self { commit_offset: 8, commit_size: 8, data_offset: 16, data_size: 4080 }
    }
}

impl PageLayout {
    /// Reads the text of `events/header_page`.
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, FtraceError> {
        let fields: Vec<Field> = text.lines().filter_map(field).collect();
        let find = |name: &str| {
            let found = fields.iter().find(|field| field.name == name);
            found.ok_or_else(|| FtraceError::NoPageField(name.to_owned()))
        };
        let (commit, data) = (find("commit")?, find("data")?);
        let layout = Self {
            commit_offset: commit.offset,
            commit_size: commit.size,
            data_offset: data.offset,
            data_size: data.size,
        };
        let sound = matches!(layout.commit_size, 4 | 8)
            && layout.commit_offset >= 8
            && layout.commit_offset.checked_add(layout.commit_size) == Some(layout.data_offset)
            && (64..=1 << 26).contains(&layout.data_size);
        if sound { Ok(layout) } else { Err(FtraceError::NoPage(format!("{layout:?}"))) }
    }

    /// Bytes of a whole page.
    pub fn page_bytes(&self) -> usize {
        self.data_offset + self.data_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOVE: &str = "name: xfs_remove\nID: 1764\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \n\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:const char * ptr;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:int namelen;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:__data_loc char[] name;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:32;\tsize:16;\tsigned:0;\n\nprint fmt: \"%d\", REC->dev\n";

    #[test]
    fn fields_are_found_by_name_whatever_their_type_is_called() {
        let format = Format::parse(REMOVE).unwrap();
        assert_eq!((format.name.as_str(), format.number), ("xfs_remove", 1764));
        let names: Vec<&str> = format.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["common_type", "dev", "ptr", "namelen", "name", "comm"]);
    }

    #[test]
    fn numbers_have_signs_and_texts_may_lie_elsewhere() {
        let format = Format::parse(REMOVE).unwrap();
        let mut record = vec![0_u8; 48];
        record[24..28].copy_from_slice(&(-3_i32).to_le_bytes());
        record[28..32].copy_from_slice(&(48_u32 | 4 << 16).to_le_bytes());
        record[32..36].copy_from_slice(b"app\0");
        record.extend(b"a.d\0");
        assert_eq!(format.field("namelen").unwrap().number(&record), Some(-3_i64 as u64));
        assert_eq!(format.field("name").unwrap().text(&record), b"a.d");
        assert_eq!(format.field("comm").unwrap().text(&record), b"app");
        assert_eq!(format.field("comm").unwrap().number(&record), None, "no number has 16 bytes");
        assert_eq!(format.field("name").unwrap().text(&record[..50]), b"", "cut off");
    }

    #[test]
    fn a_format_without_name_or_number_is_refused() {
        assert!(Format::parse("ID: 3\n").unwrap_err().to_string().contains("name"));
        assert!(Format::parse("name: a\nID: 70000\n").unwrap_err().to_string().contains("ID"));
    }

    #[test]
    fn a_page_is_laid_out_as_its_kernel_says() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n";
        let layout = PageLayout::parse(text).unwrap();
        assert_eq!((layout.commit_size, layout.data_offset, layout.page_bytes()), (4, 12, 4096));
        assert!(PageLayout::parse(&text.replace("size:4;", "size:5;")).is_err());
        assert!(PageLayout::parse("").unwrap_err().to_string().contains("commit"));
    }
}
