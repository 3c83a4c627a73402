-- Reads what a lane is.
SELECT queue, graph, fingerprint FROM lanes WHERE lane = ?1;
