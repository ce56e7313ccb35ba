/**
 * The colours of the pay page, the guides and the operator dashboard. Text has a contrast of at least 4.5 to 1 against
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
