import compile from 'icu-minify/compile';

/**
 * Loader of `next.config.js` for the files of texts: parses their ICU MessageFormat in the build, so that pages need
 * the formatter only and not the parser, which is 7 kB.
 *
 * @param {string} source JSON
 */
// biome-ignore lint/style/noDefaultExport: A loader has to be one.
export default function compileTexts(source) {
  return `export default ${JSON.stringify(compiled(JSON.parse(source)))}`;
}

/** @param {string | object} texts @returns {unknown} */
function compiled(texts) {
  if (typeof texts === 'string') return compile(texts);
  return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, compiled(text)]));
}
