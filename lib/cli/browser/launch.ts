import { existsSync, readdirSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type LaunchOptions } from 'playwright';
import { type Backend, isSoftware, KinoraError } from '../../contract';
import { ensureBrowser } from './find';

/** In the place of Playwright's own list of features that are left out, since the last flag counts. */
const leftOut = [
  // Pages for an address bar that nobody sees: they take more than a second of the CPU at each start.
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'AimEnabled'],
  // Calls of outside hosts.
  ...['NetworkTimeServiceQuerying', 'OptimizationHints', 'PreconnectToSearch', 'MediaRouter'],
  // As Playwright explains them: chromiumSwitches.ts.
  ...['AvoidCorsURLLoaderRestartOnRedirect', 'AvoidUnnecessaryBeforeUnloadCheckSync'],
  ...['DestroyProfileOnBrowserClose', 'HttpsFirstBalancedModeAutoEnable', 'HttpsUpgrades'],
  ...['LensOverlay', 'PaintHolding', 'TcpPortRandomizationWin', 'ThirdPartyStoragePartitioning'],
];

/** Keeps Chromium from calling outside hosts and from asking first-run questions. */
const quietFlags = [
  `--disable-features=${leftOut.join(',')}`,
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
const softwareFlags = [
  ...sandboxFlags,
  ...quietFlags,
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  // SwiftShader unrolls this extension into a store for each element: a loop in its place, which Dawn then writes,
  // makes compiling our kernels three times as fast and computes the same.
  '--disable-dawn-features=use_vulkan_zero_initialize_workgroup_memory_extension',
];

/** WebGPU on the machine's own GPU. Headless Chromium on Linux reaches it through Vulkan only. */
const hardwareFlags = [
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

/** The message of a command that uses no GPU. @param asked the backend that was asked for */
export function withoutGpu(backend: Backend, asked?: Backend): string {
  if (backend === 'webgpu') return 'No GPU is used: WebGPU runs on the CPU (SwiftShader).';
  return asked
    ? 'The CPU computes (WebAssembly).'
    : 'There is no GPU here: the CPU computes (WebAssembly). --backend webgpu emulates one, slower.';
}

/** A running browser, or one with a profile that lasts, and whether its WebGPU is computed on the CPU. */
export interface Started<B = Browser> {
  readonly browser: B;
  readonly software: boolean;
}

/** Signals are left to the caller. */
const withoutSignals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false };

/**
 * Starts headless Chromium on the machine's GPU where a page is given one, else on SwiftShader.
 * `KINORA_GPU=software` skips the attempt, `KINORA_GPU=hardware` insists on it.
 *
 * @throws KinoraError `BROWSER_MISSING`; `ADAPTER_MISSING` where there is no GPU and it is insisted on
 */
export async function launchBrowser(): Promise<Started> {
  const executablePath = await ensureBrowser();
  return onBestDevice((args) => chromium.launch({ executablePath, args, ...withoutSignals }));
}

/**
 * The same with a profile: what pages store lies in `folder` and is there the next time.
 *
 * @param more flags besides those of the device
 */
export async function launchProfile(
  folder: string,
  more: readonly string[],
): Promise<Started<BrowserContext>> {
  const executablePath = await ensureBrowser();
  return onBestDevice((flags) => {
    const args = [...flags, ...more];
    return chromium.launchPersistentContext(folder, { executablePath, args, ...withoutSignals });
  });
}

async function onBestDevice<T extends Pick<BrowserContext, 'newPage' | 'close'>>(
  launch: (flags: string[]) => Promise<T>,
): Promise<Started<T>> {
  const wanted = process.env.KINORA_GPU ?? '';
  if (!['', 'software', 'hardware'].includes(wanted)) {
    const sentence = `KINORA_GPU is software or hardware, not "${wanted}".`;
    throw new KinoraError('PARAMETER_INVALID', sentence);
  }
  // Without a device a first start could only find out what is known.
  const isPossible = process.platform !== 'linux' || hasDevice();
  if (wanted === 'hardware' || (wanted === '' && isPossible)) {
    // If it does not start with them, it starts without.
    const browser = await launch(hardwareFlags).catch(() => undefined);
    const adapter = browser ? await adapterOf(browser) : 'no browser that starts with a GPU';
    if (browser && adapter === null) return { browser, software: false };
    await browser?.close();
    if (wanted === 'hardware') throw noHardware(adapter ?? '');
  }
  return { browser: await launch(softwareFlags), software: true };
}

/** @param found what there is in place of a GPU */
function noHardware(found: string): KinoraError {
  const missing = process.platform === 'linux' ? missingOnLinux() : [];
  const sentences = [`KINORA_GPU=hardware: the browser found ${found}.`, ...missing];
  return new KinoraError('ADAPTER_MISSING', sentences.join(' '), {
    remedy:
      'Install the driver of the graphics card, with Vulkan on Linux, or run without KINORA_GPU.',
  });
}

const filesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);

/** Whether Linux has a device of a graphics card; `dxg` is that of Windows below WSL. */
function hasDevice(): boolean {
  return [...filesIn('/dev/dri'), ...filesIn('/dev')].some((name) =>
    /^(renderD|nvidia)\d+$|^dxg$/.test(name),
  );
}

/** System libraries that Chromium needs, as far as files tell. */
function missingOnLinux(): string[] {
  const drivers = ['/usr/share/vulkan/icd.d', '/etc/vulkan/icd.d'].flatMap(filesIn);
  return [
    ...(hasDevice()
      ? []
      : ['The system has no device of a graphics card (/dev/dri, /dev/nvidia).']),
    drivers.length > 0
      ? `Its Vulkan drivers: ${drivers.join(', ')}.`
      : 'It has no Vulkan driver (/usr/share/vulkan/icd.d, /etc/vulkan/icd.d).',
  ];
}

/** WebGPU exists in secure contexts only; nothing has to be there, as all requests are answered here. */
const blankPage = 'http://127.0.0.1/';

/**
 * Asks a blank page for an adapter; a driver that hangs counts as none.
 *
 * @returns null for that of a GPU, otherwise what there is
 */
async function adapterOf(browser: Pick<BrowserContext, 'newPage'>): Promise<string | null> {
  const page = await browser.newPage();
  try {
    await page.route('**/*', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>GPU</title>' }),
    );
    await page.goto(blankPage, { timeout: 10_000 });
    const adapterInfo = page.evaluate(async () => {
      const adapter = await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' });
      if (!adapter) return null;
      const { vendor, architecture, device, description, isFallbackAdapter } = adapter.info;
      return { vendor, architecture, device, description, isFallbackAdapter };
    });
    const late = new Promise<null>((resolve) => setTimeout(resolve, 10_000, null).unref());
    const info = await Promise.race([adapterInfo, late]);
    if (info === null) return 'no adapter';
    if (!isSoftware(info)) return null;
    const names = [info.vendor, info.architecture, info.description].filter(Boolean);
    return `an emulated GPU only (${names.join(' ')})`;
  } catch {
    return 'no adapter: its page crashed';
  } finally {
    // It may have crashed.
    await page.close().catch(() => undefined);
  }
}
