import { createHash } from 'node:crypto';

/** The rules of a shared page, with the colours of `app/globals.css`. */
export const pageStyles = `
:root{color-scheme:light dark;--paper:#faf8f5;--surface:#fff;--line:#e3dcd2;--ink:#221e1a;--soft:#655c52;--accent:#b8431c;--strong:#98350f;--on-accent:#fff}
@media (prefers-color-scheme:dark){:root{--paper:#151312;--surface:#1e1b19;--line:#37322e;--ink:#f1ece6;--soft:#b3a89c;--accent:#f08a5d;--strong:#ffa47d;--on-accent:#221009}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:min(1280px,100vw);padding:0 16px 32px;background:var(--paper);color:var(--ink);font:16px/1.55 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
header{padding:16px 0}
header a{color:inherit;font-weight:700;text-decoration:none}
a{color:var(--strong);text-underline-offset:3px}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
video,.still{display:block;height:auto;border-radius:14px}
video{width:min(100%,78vh*16/9);background:#000}
video.tall{width:min(100%,78vh*9/16)}
h1{margin:20px 0 8px;font-size:1.4rem;line-height:1.3;overflow-wrap:anywhere}
h2{margin:24px 0 8px;font-size:1rem}
p{margin:8px 0;max-width:70ch;overflow-wrap:anywhere;white-space:pre-line}
.soft{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 20px;margin:0}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere}
.still{max-width:320px;max-height:320px;width:auto}
.open{display:inline-block;margin:12px 0;padding:10px 18px;border-radius:9px;background:var(--accent);color:var(--on-accent);font-weight:600;text-decoration:none}
summary{padding:16px;border:1px solid var(--line);border-radius:14px;background:var(--surface);cursor:pointer}
details[open] summary{margin-bottom:12px}
footer{margin-top:32px;padding-top:16px;border-top:1px solid var(--line);color:var(--soft);font-size:.9rem}
footer a{margin-right:20px}
`;

/** The rules of the page that other sites show in a frame. */
export const embedStyles = `
html,body{height:100%;margin:0;background:#000;color:#f1ece6;font:16px/1.5 system-ui,sans-serif}
video{display:block;width:100%;height:100%}
summary,p{padding:16px;cursor:pointer}
details[open]{height:100%}
details[open] summary{display:none}
`;

/** The source of a style in a `Content-Security-Policy`. */
export function styleSource(styles: string): string {
  return `'sha256-${createHash('sha256').update(styles).digest('base64')}'`;
}
