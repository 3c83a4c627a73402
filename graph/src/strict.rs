//! From Rust values to JSON without loss: a float that is not finite is refused with its path,
//! where serde_json would write null; so is a value nested too deeply, before the stack is at risk.

use std::fmt;

use serde::{Serialize, ser};
use serde_json::{Map, Number, Value};

use crate::limits::JSON_DEPTH_MAX;

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
}

impl Fault {
    fn new(why: impl Into<String>) -> Self {
        Self { path: Vec::new(), why: why.into() }
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
        Self::new(why.to_string())
    }
}

#[derive(Clone, Copy)]
struct Serializer {
    depth: usize,
}

impl Serializer {
    fn inner(self) -> Result<Self, Fault> {
        if self.depth > JSON_DEPTH_MAX {
            return Err(Fault::new(format!("is nested more than {JSON_DEPTH_MAX} levels deep")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

fn float(number: f64) -> Result<Value, Fault> {
    let number = Number::from_f64(number);
    number.map(Value::Number).ok_or_else(|| Fault::new("is not a finite number"))
}

struct List {
    items: Vec<Value>,
    inner: Serializer,
    variant: Option<&'static str>,
}

impl List {
    fn push(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Fault> {
        let index = self.items.len();
        let item = value.serialize(self.inner).map_err(|fault| fault.at(format!("[{index}]")))?;
        self.items.push(item);
        Ok(())
    }

    fn done(self) -> Value {
        tagged(self.variant, Value::Array(self.items))
    }
}

struct Object {
    map: Map<String, Value>,
    key: Option<String>,
    inner: Serializer,
    variant: Option<&'static str>,
}

impl Object {
    fn put(&mut self, key: String, value: &(impl Serialize + ?Sized)) -> Result<(), Fault> {
        let shown = crate::printable(&key, 40);
        let value = value.serialize(self.inner).map_err(|fault| fault.at(format!(".{shown}")))?;
        self.map.insert(key, value);
        Ok(())
    }

    fn done(self) -> Value {
        tagged(self.variant, Value::Object(self.map))
    }
}

fn tagged(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        None => value,
        Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
    }
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
            (Err(_), Err(_)) => Err(Fault::new(format!("{v} does not fit 64 bits"))),
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
        let v = u64::try_from(v).map_err(|_| Fault::new(format!("{v} does not fit 64 bits")))?;
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

impl ser::SerializeSeq for List {
    type Ok = Value;
    type Error = Fault;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.push(value)
    }
    fn end(self) -> Result<Value, Fault> {
        Ok(self.done())
    }
}

impl ser::SerializeTuple for List {
    type Ok = Value;
    type Error = Fault;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.push(value)
    }
    fn end(self) -> Result<Value, Fault> {
        Ok(self.done())
    }
}

impl ser::SerializeTupleStruct for List {
    type Ok = Value;
    type Error = Fault;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.push(value)
    }
    fn end(self) -> Result<Value, Fault> {
        Ok(self.done())
    }
}

impl ser::SerializeTupleVariant for List {
    type Ok = Value;
    type Error = Fault;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.push(value)
    }
    fn end(self) -> Result<Value, Fault> {
        Ok(self.done())
    }
}

impl ser::SerializeMap for Object {
    type Ok = Value;
    type Error = Fault;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        self.key = Some(match key.serialize(self.inner)? {
            Value::String(text) => text,
            number @ (Value::Number(_) | Value::Bool(_)) => number.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                return Err(Fault::new("has a key that is no text"));
            }
        });
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        let key = self.key.take().unwrap_or_default();
        self.put(key, value)
    }
    fn end(self) -> Result<Value, Fault> {
        Ok(self.done())
    }
}

impl ser::SerializeStruct for Object {
    type Ok = Value;
    type Error = Fault;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        self.put(key.to_owned(), value)
    }
    fn end(self) -> Result<Value, Fault> {
        Ok(self.done())
    }
}

impl ser::SerializeStructVariant for Object {
    type Ok = Value;
    type Error = Fault;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Fault> {
        self.put(key.to_owned(), value)
    }
    fn end(self) -> Result<Value, Fault> {
        Ok(self.done())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Unit,
        New(f64),
        Pair(i32, f64),
        Named { x: f64 },
    }

    #[test]
    fn what_json_can_hold_is_as_serde_json_writes_it() {
        let value = (
            Shape::Unit,
            Shape::New(0.5),
            Shape::Pair(1, 2.0),
            Shape::Named { x: -0.0 },
            BTreeMap::from([(1, Some("a")), (2, None)]),
            ((), 'c', u64::MAX, i64::MIN, [1_u8, 2]),
        );
        assert_eq!(to_value(&value).unwrap(), serde_json::to_value(&value).unwrap());
    }

    #[test]
    fn a_float_that_is_not_finite_is_refused_with_its_path() {
        let value = BTreeMap::from([("list", vec![Shape::Named { x: f64::NAN }])]);
        let fault = to_value(&value).unwrap_err();
        assert_eq!(fault.to_string(), ".list[0].x is not a finite number");
        assert!(to_value(&f64::INFINITY).is_err());
        assert!(to_value(&f32::NEG_INFINITY).is_err());
    }

    #[test]
    fn a_deep_value_is_refused_before_the_stack_is_at_risk() {
        #[derive(Serialize)]
        struct Deep(Option<Box<[Deep]>>);
        let mut deep = Deep(None);
        for _ in 0..10_000 {
            deep = Deep(Some(Box::new([deep])));
        }
        let fault = to_value(&deep).unwrap_err();
        assert!(fault.to_string().contains("64 levels"), "{fault}");
        // The value itself is dropped level by level, which is the caller's business.
        while let Deep(Some(inner)) = deep {
            deep = inner.into_iter().next().unwrap();
        }
    }
}
