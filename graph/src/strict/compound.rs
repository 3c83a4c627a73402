//! Lists and objects under construction.

use serde::{Serialize, ser};
use serde_json::{Map, Value};

use super::{Fault, Serializer};
use crate::Code;

pub(super) struct List {
    pub(super) items: Vec<Value>,
    pub(super) inner: Serializer,
    pub(super) variant: Option<&'static str>,
}

impl List {
    pub(super) fn push(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Fault> {
        let index = self.items.len();
        let item = value.serialize(self.inner).map_err(|fault| fault.at(format!("[{index}]")))?;
        self.items.push(item);
        Ok(())
    }

    pub(super) fn done(self) -> Value {
        tagged(self.variant, Value::Array(self.items))
    }
}

pub(super) struct Object {
    pub(super) map: Map<String, Value>,
    pub(super) key: Option<String>,
    pub(super) inner: Serializer,
    pub(super) variant: Option<&'static str>,
}

impl Object {
    pub(super) fn put(
        &mut self,
        key: String,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Fault> {
        let shown = crate::printable(&key, 40);
        let value = value.serialize(self.inner).map_err(|fault| fault.at(format!(".{shown}")))?;
        self.map.insert(key, value);
        Ok(())
    }

    pub(super) fn done(self) -> Value {
        tagged(self.variant, Value::Object(self.map))
    }
}

pub(super) fn tagged(variant: Option<&'static str>, value: Value) -> Value {
    match variant {
        None => value,
        Some(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
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
                return Err(Fault::new(Code::Type, "has a key that is no text"));
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
