//! From Rust values to JSON without loss: a float that is not finite is refused with its path,
//! where serde_json would write null; so is a value nested too deeply, before the stack is at risk.

mod compound;

use std::fmt;

use serde::{Serialize, ser};
use serde_json::{Map, Number, Value};

use self::compound::{List, Object, tagged};
use crate::{Code, limits::JSON_DEPTH_MAX};

/// Turns a value into JSON.
///
/// # Errors
/// The path of what JSON cannot hold, and why.
pub fn to_value(value: &(impl Serialize + ?Sized)) -> Result<Value, Fault> {
    value.serialize(Serializer { depth: 1 })
}

/// What JSON cannot hold, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    path: Vec<String>,
    why: String,
    code: Code,
}

impl Fault {
    /// The stable code: `E_NUMBER`, `E_DEPTH` or `E_TYPE`.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    fn new(code: Code, why: impl Into<String>) -> Self {
        Self { path: Vec::new(), why: why.into(), code }
    }

    /// The same fault, one level further out.
    fn at(mut self, part: String) -> Self {
        if self.path.len() < 16 {
            self.path.push(part);
        }
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.path.iter().rev() {
            f.write_str(part)?;
        }
        write!(f, " {}", self.why)
    }
}

impl std::error::Error for Fault {}

impl ser::Error for Fault {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self::new(Code::Type, why.to_string())
    }
}

#[derive(Clone, Copy)]
struct Serializer {
    depth: usize,
}

impl Serializer {
    fn inner(self) -> Result<Self, Fault> {
        if self.depth > JSON_DEPTH_MAX {
            return Err(Fault::new(
                Code::Depth,
                format!("is nested more than {JSON_DEPTH_MAX} levels deep"),
            ));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

fn float(number: f64) -> Result<Value, Fault> {
    let number = Number::from_f64(number);
    number.map(Value::Number).ok_or_else(|| Fault::new(Code::Number, "is not a finite number"))
}

impl ser::Serializer for Serializer {
    type Ok = Value;
    type Error = Fault;
    type SerializeSeq = List;
    type SerializeTuple = List;
    type SerializeTupleStruct = List;
    type SerializeTupleVariant = List;
    type SerializeMap = Object;
    type SerializeStruct = Object;
    type SerializeStructVariant = Object;

    fn serialize_bool(self, v: bool) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_i8(self, v: i8) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_i16(self, v: i16) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_i32(self, v: i32) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_i64(self, v: i64) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_i128(self, v: i128) -> Result<Value, Fault> {
        match (i64::try_from(v), u64::try_from(v)) {
            (Ok(v), _) => Ok(v.into()),
            (_, Ok(v)) => Ok(v.into()),
            (Err(_), Err(_)) => Err(Fault::new(Code::Number, format!("{v} does not fit 64 bits"))),
        }
    }
    fn serialize_u8(self, v: u8) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_u16(self, v: u16) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_u32(self, v: u32) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_u64(self, v: u64) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_u128(self, v: u128) -> Result<Value, Fault> {
        let v = u64::try_from(v)
            .map_err(|_| Fault::new(Code::Number, format!("{v} does not fit 64 bits")))?;
        Ok(v.into())
    }
    fn serialize_f32(self, v: f32) -> Result<Value, Fault> {
        float(f64::from(v))
    }
    fn serialize_f64(self, v: f64) -> Result<Value, Fault> {
        float(v)
    }
    fn serialize_char(self, v: char) -> Result<Value, Fault> {
        Ok(v.to_string().into())
    }
    fn serialize_str(self, v: &str) -> Result<Value, Fault> {
        Ok(v.into())
    }
    fn serialize_bytes(self, v: &[u8]) -> Result<Value, Fault> {
        self.collect_seq(v)
    }
    fn serialize_none(self) -> Result<Value, Fault> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Fault> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value, Fault> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value, Fault> {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, Fault> {
        Ok(variant.into())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, Fault> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Value, Fault> {
        let value = value.serialize(self.inner()?);
        Ok(tagged(Some(variant), value.map_err(|fault| fault.at(format!(".{variant}")))?))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<List, Fault> {
        Ok(List { items: Vec::new(), inner: self.inner()?, variant: None })
    }
    fn serialize_tuple(self, len: usize) -> Result<List, Fault> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<List, Fault> {
        self.serialize_seq(Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<List, Fault> {
        Ok(List { items: Vec::new(), inner: self.inner()?.inner()?, variant: Some(variant) })
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Object, Fault> {
        Ok(Object { map: Map::new(), key: None, inner: self.inner()?, variant: None })
    }
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Object, Fault> {
        self.serialize_map(Some(len))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Object, Fault> {
        let inner = self.inner()?.inner()?;
        Ok(Object { map: Map::new(), key: None, inner, variant: Some(variant) })
    }
}

#[cfg(test)]
mod tests;
