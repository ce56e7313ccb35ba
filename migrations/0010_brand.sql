-- A merchant's brand on its pay pages. Instances of the earlier version write none of it.
alter table merchants
  add column brand_colour text,
  add column brand_website text,
  add column brand_support text,
  -- SHA-256 of the logo in merchant_logos, so that a pay page needs no other table to link it.
  add column brand_logo text;

alter table merchants add constraint merchants_brand_colour_check check (brand_colour ~ '^#[0-9a-f]{6}$');
alter table merchants add constraint merchants_brand_website_check
  check (brand_website ~ '^https://[^\s"<>]+$' and char_length(brand_website) <= 255);
-- An e-mail address or a telephone number.
alter table merchants add constraint merchants_brand_support_check
  check (brand_support ~ '^[^\s@]+@[^\s@]+$|^\+?[0-9](?:[ -]?[0-9]){2,14}$' and char_length(brand_support) <= 254);
alter table merchants add constraint merchants_brand_logo_check check (brand_logo ~ '^[0-9a-f]{64}$');

-- Separate from merchants, which many statements read, and which Citus copies to every node.
create table merchant_logos (
  mid text not null constraint merchant_logos_pkey primary key constraint merchant_logos_mid_fkey references merchants (mid),
  sha256 text not null constraint merchant_logos_sha256_check check (sha256 ~ '^[0-9a-f]{64}$'),
  png bytea not null constraint merchant_logos_png_check check (octet_length(png) between 1 and 32768)
);
