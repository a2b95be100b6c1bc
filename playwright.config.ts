import { defineConfig } from 'playwright/test';
import { testLaunchOptions } from './lib/cli/browser/launch';

/** The pages and the commands in real Chromium, against the built app. */
export default defineConfig({
  testDir: 'e2e',
  globalSetup: './e2e/support/global-setup.ts',
  outputDir: 'test-results/playwright',
  // Three files at a time: a page waits as often as it computes. The time limits are for two slow cores.
  workers: 3,
  timeout: 480_000,
  expect: { timeout: 60_000 },
  forbidOnly: Boolean(process.env.CI),
  reporter: [['list']],
  use: {
    // Set by the global setup, which has run when a worker reads this file.
    ...(process.env.KINORA_ORIGIN && { baseURL: process.env.KINORA_ORIGIN }),
    launchOptions: await testLaunchOptions(),
    locale: 'en-GB',
    trace: 'off',
  },
});
