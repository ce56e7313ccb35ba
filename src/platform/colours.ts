/**
 * The colours of the pay page, the guides and the operator console. Text has a contrast of at least 4.5 to 1 against
 * its background.
 */
export const COLOURS = `:root {
  color-scheme: light dark;
  --ground: #fff;
  --raised: #f4f5fa;
  --behind: #eef0f7;
  --card: #fff;
  --ink: #14172b;
  --quiet: #565b73;
  --line: #c9cddd;
  --shadow: rgb(20 23 43 / 8%);
  --accent: #3b3fd8;
  --on-accent: #fff;
  --good: #0c7a43;
  --bad: #b3261e;
  --warning: #dba000;
  --unpaid: #8388a3;
  --around-qr: #fff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0d0f1a;
    --raised: #181b2b;
    --behind: #0d0f1a;
    --card: #181b2b;
    --ink: #f1f2fa;
    --quiet: #a9aec8;
    --line: #434a6b;
    --accent: #a5a8ff;
    --on-accent: #11132a;
    --good: #5bd696;
    --bad: #ff8f86;
    --unpaid: #676e93;
  }
}
`

/**
 * The colours of code samples. Code samples are dark in both colour schemes, and black on white in print. Each text
 * colour has a contrast of at least 4.5 to 1 against both backgrounds, `--panel` and `--sample`.
 */
export const SAMPLE_COLOURS = `:root {
  --panel: #12142a;
  --sample: #1a1d36;
  --sample-line: #343961;
  --sample-ink: #eceefb;
  --sample-quiet: #a9aec8;
  --sample-keyword: #b3b1ff;
  --sample-string: #8fdcb0;
  --sample-number: #ffb787;
  --sample-name: #8ecbff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --panel: #090a12;
  }
}
@media print {
  :root {
    color-scheme: light;
    --sample: #fff;
    --sample-line: #999;
    --sample-ink: #000;
    --sample-quiet: #444;
    --sample-keyword: #000;
    --sample-string: #000;
    --sample-number: #000;
    --sample-name: #000;
  }
}
`

/**
 * The colours of the pay page. `--brand` and `--on-brand` are those of the merchant and the same in both colour
 * schemes, `--mark` is the colour of lines on a card. Text has a contrast of at least 4.5 to 1 against its background.
 */
export const PAY_COLOURS = `:root {
  color-scheme: light dark;
  --ink: #15171c;
  --muted: #5a6070;
  --line: #e3e6ec;
  --edge: #838a99;
  --wash: #f5f6f8;
  --card: #fff;
  --good: #0c7a43;
  --on-good: #fff;
  --warn: #8a5300;
  --warn-wash: #fff6e5;
  --bad: #b3261e;
  --bad-wash: #fdf1f0;
  --mark: var(--brand);
  --paper: #fff;
  --print: #000;
  --cred: #15171c;
  --test: #ffe7b3;
  --on-test: #3d2a00;
  --test-edge: #7a5a10;
  --test-button: #fffaf0;
  --googlepay: #1a73e8;
  --phonepe: #5f259f;
  --paytm: #00baf2;
  --on-paytm: #002970;
  --bhim: #e87722;
  --shadow: rgb(20 23 43 / 12%);
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #f1f2f5;
    --muted: #a9afbd;
    --line: #363b47;
    --edge: #757c8c;
    --wash: #101218;
    --card: #1a1d25;
    --good: #5bd696;
    --on-good: #06210f;
    --warn: #ffca7a;
    --warn-wash: #2c2210;
    --bad: #ff9a92;
    --bad-wash: #2f1715;
    --mark: color-mix(in srgb, var(--brand), #fff 55%);
  }
}
`
