-- Counts the open questions: each one stands in one of these lists.
SELECT count(*) FROM listed
WHERE ns = ?1 AND list IN ('ou:all', 'oo:all', 'ou:some', 'oo:some');
