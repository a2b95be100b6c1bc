/** A static export, as `npm run export` makes it: no API, no headers, a folder for each page. */
const isExport = process.env.KINORA_EXPORT === '1';
/** Path of the folder in which the host of the export has it; empty for the root of a host. */
const basePath = isExport ? (process.env.KINORA_BASE_PATH ?? '') : '';

/**
 * Cross-origin isolation gives the CPU backend its threads (SharedArrayBuffer); everything the page
 * needs is served by the page's own origin, so nothing is shut out by it.
 */
async function headers() {
  return [
    {
      // Pages and what they load. What the API answers says itself who may read it.
      source: '/((?!api/).*)',
      headers: [
        { key: 'Cross-Origin-Opener-Policy', value: 'same-origin' },
        { key: 'Cross-Origin-Embedder-Policy', value: 'require-corp' },
        { key: 'X-Content-Type-Options', value: 'nosniff' },
        { key: 'Referrer-Policy', value: 'no-referrer' },
        // No other site puts a button of ours under its own. The Node server's share embeds have their own policy.
        { key: 'Content-Security-Policy', value: "frame-ancestors 'none'" },
      ],
    },
    {
      // Next lets shared caches keep pages for a year: after an update they would name scripts that are gone.
      source: '/((?!api/|_next/).*)',
      headers: [{ key: 'Cache-Control', value: 'no-cache' }],
    },
  ];
}

/** @type {import('next').NextConfig} */
const nextConfig = {
  reactStrictMode: true,
  poweredByHeader: false,
  devIndicators: false,
  // No page resizes images on the server: `sharp`, which would, is replaced in package.json.
  images: { unoptimized: true },
  // `npm run types` checks them, once, for everything.
  typescript: { ignoreBuildErrors: true },
  turbopack: {
    rules: { '**/app/texts/*/*.json': { loaders: ['./lib/cli/dev/compile-texts.js'], as: '*.js' } },
    resolveAlias: { 'use-intl/format-message': 'use-intl/format-message/format-only' },
  },
  env: { KINORA_EXPORT: isExport ? '1' : '', KINORA_BASE_PATH: basePath },
  ...(isExport
    ? { output: 'export', distDir: 'out-static', trailingSlash: true, basePath }
    : { headers }),
};

export default nextConfig;
