-- The shop's own database: what customers, products and stock there are. SQLite; see README.md.
CREATE TABLE products (
    product_id TEXT NOT NULL PRIMARY KEY,
    description TEXT NOT NULL,
    updated_at TIMESTAMP NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);
CREATE TABLE stock (
    product_id TEXT NOT NULL PRIMARY KEY,
    quantity INTEGER NOT NULL,
    updated_at TIMESTAMP NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);
CREATE TABLE customers (
    customer_id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    country TEXT,
    updated_at TIMESTAMP NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);
-- A change is found by its time, so that every change has to have one.
CREATE TRIGGER products_touched AFTER UPDATE OF description ON products BEGIN
    UPDATE products SET updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE product_id = new.product_id;
END;
CREATE TRIGGER stock_touched AFTER UPDATE OF quantity ON stock BEGIN
    UPDATE stock SET updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE product_id = new.product_id;
END;
CREATE TRIGGER customers_touched AFTER UPDATE OF name, email, country ON customers BEGIN
    UPDATE customers SET updated_at = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE customer_id = new.customer_id;
END;
INSERT INTO products (product_id, description) VALUES ('item-001', 'A lamp'), ('item-002', 'A kettle');
INSERT INTO stock (product_id, quantity) VALUES ('item-001', 100), ('item-002', 1);
INSERT INTO customers (customer_id, name, email, country)
    VALUES ('c1', 'Ada', 'ada@customers.example', 'France'), ('c2', 'Bo', 'bo@customers.example', NULL);
