import { playwright } from '@vitest/browser-playwright';
import { defineConfig } from 'vitest/config';
import { testLaunchOptions } from './lib/cli/browser/launch';
import { SummaryReporter } from './lib/cli/dev/test-summary';

/** Two projects: `x.test.ts` runs in Node, `x.browser.test.ts` in real Chromium with WebGPU. */
export default defineConfig({
  server: {
    host: '127.0.0.1',
    headers: {
      'Cross-Origin-Opener-Policy': 'same-origin',
      'Cross-Origin-Embedder-Policy': 'require-corp',
    },
  },
  // Workers of the browser tests have no `process`; the build sets it.
  define: { 'process.env.KINORA_BASE_PATH': '""' },
  optimizeDeps: {
    exclude: ['onnxruntime-web', '@ffmpeg/ffmpeg', '@ffmpeg/core'],
  },
  test: {
    globalSetup: './lib/cli/dev/compile-kernels.ts',
    setupFiles: './lib/cli/dev/test-equality.ts',
    maxWorkers: 2,
    reporters: ['default', new SummaryReporter()],
    tags: [
      { name: 'full', description: 'Left out of `npm test`; `npm run test:all` runs it too.' },
    ],
    // A machine that stands still for a second is no failure.
    expect: { poll: { timeout: 20_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'node',
          environment: 'node',
          isolate: false,
          include: ['{app,lib,relay,e2e}/**/*.test.{ts,tsx}'],
          exclude: ['**/node_modules/**', '**/*.browser.test.{ts,tsx}'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          include: ['{app,lib,relay}/**/*.browser.test.{ts,tsx}'],
          testTimeout: 300_000,
          fileParallelism: false,
          browser: {
            enabled: true,
            headless: true,
            screenshotFailures: false,
            provider: playwright({
              launchOptions: await testLaunchOptions(),
            }),
            instances: [{ browser: 'chromium' }],
          },
        },
      },
    ],
  },
});
