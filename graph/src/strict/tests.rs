//! What the strict serialiser takes and refuses.

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
