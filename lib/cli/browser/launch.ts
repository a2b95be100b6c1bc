import { type Browser, type BrowserContext, chromium, type LaunchOptions } from 'playwright';
import { isSoftware } from '../../contract/kernel-setting';
import { ensureBrowser } from './find';

/** Keeps Chromium from calling outside hosts and from asking first-run questions. */
const quietFlags = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** Chromium refuses to run as root inside its sandbox; CI containers often lack the means for it. */
const sandboxFlags =
  process.platform === 'linux' && (process.getuid?.() === 0 || process.env.CI)
    ? ['--no-sandbox']
    : [];

/** WebGPU computed on the CPU by SwiftShader: the same on every machine. */
export const softwareFlags: readonly string[] = [
  ...sandboxFlags,
  ...quietFlags,
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  // SwiftShader unrolls this extension into a store for each element: a loop in its place, which Dawn then writes,
  // makes compiling our kernels three times as fast and computes the same.
  '--disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension',
];

/** WebGPU on the machine's own GPU. Headless Chromium on Linux reaches it through Vulkan only. */
export const hardwareFlags: readonly string[] = [
  ...sandboxFlags,
  ...quietFlags,
  '--enable-unsafe-webgpu',
  ...(process.platform === 'linux'
    ? [
        '--enable-features=Vulkan,VulkanFromANGLE,DefaultANGLEVulkan',
        '--use-angle=vulkan',
        '--ignore-gpu-blocklist',
        // f16, which Chromium leaves out there: storage of half the size, and the mode `matrix`.
        '--enable-dawn-features=vulkan_enable_f16_on_nvidia',
      ]
    : []),
];

/** WebGPU is there but finds no adapter, as with a blocked or missing graphics driver. */
export const noAdapterFlags: readonly string[] = [...sandboxFlags, ...quietFlags, '--disable-gpu'];

/** How tests start Chromium. */
export async function testLaunchOptions(): Promise<LaunchOptions> {
  return { executablePath: await ensureBrowser(), args: [...softwareFlags] };
}

/** A running browser and whether its WebGPU is computed on the CPU. */
export interface StartedBrowser {
  readonly browser: Browser;
  readonly software: boolean;
}

/** The same for a browser with a profile that lasts. */
export interface StartedProfile {
  readonly context: BrowserContext;
  readonly software: boolean;
}

/** Signals are left to the caller. */
const withoutSignals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };

/**
 * Starts headless Chromium on the machine's GPU where a page is given one, else on SwiftShader.
 * `KINORA_GPU=software` skips the attempt.
 *
 * @throws KinoraError `BROWSER_MISSING`
 */
export async function launchBrowser(): Promise<StartedBrowser> {
  const executablePath = await ensureBrowser();
  const { browser, software } = await onBestDevice((flags) =>
    chromium.launch({ executablePath, args: [...flags], ...withoutSignals }),
  );
  return { browser, software };
}

/**
 * The same with a profile: what pages store lies in `folder` and is there the next time.
 *
 * @param more flags besides those of the device
 */
export async function launchProfile(
  folder: string,
  more: readonly string[],
): Promise<StartedProfile> {
  const executablePath = await ensureBrowser();
  const { browser, software } = await onBestDevice((flags) =>
    chromium.launchPersistentContext(folder, {
      executablePath,
      args: [...flags, ...more],
      ...withoutSignals,
    }),
  );
  return { context: browser, software };
}

async function onBestDevice<T extends Pick<BrowserContext, 'newPage' | 'close'>>(
  launch: (flags: readonly string[]) => Promise<T>,
): Promise<{ browser: T; software: boolean }> {
  if (process.env.KINORA_GPU !== 'software') {
    // Where it does not start with them it starts without.
    const browser = await launch(hardwareFlags).catch(() => undefined);
    if (browser && (await hasHardwareAdapter(browser))) return { browser, software: false };
    await browser?.close();
  }
  return { browser: await launch(softwareFlags), software: true };
}

/** WebGPU exists in secure contexts only; nothing has to be there, as all requests are answered here. */
const blankPage = 'http://127.0.0.1/';

/** Asks a blank page for an adapter; a driver that hangs counts as none. */
async function hasHardwareAdapter(browser: Pick<BrowserContext, 'newPage'>): Promise<boolean> {
  const page = await browser.newPage();
  try {
    await page.route('**/*', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>GPU</title>' }),
    );
    await page.goto(blankPage, { timeout: 10_000 });
    const adapterInfo = page.evaluate(async () => {
      const adapter = await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' });
      if (!adapter) return null;
      const { architecture, device, description, isFallbackAdapter } = adapter.info;
      return { architecture, device, description, isFallbackAdapter };
    });
    const late = new Promise<null>((resolve) => setTimeout(resolve, 10_000, null).unref());
    const info = await Promise.race([adapterInfo, late]);
    return info !== null && !isSoftware(info);
  } catch {
    // A page that crashes has no adapter.
    return false;
  } finally {
    // It may have crashed.
    await page.close().catch(() => undefined);
  }
}
