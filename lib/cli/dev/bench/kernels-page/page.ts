import { proxy, type Remote, wrap } from 'comlink';
import { toKinoraError } from '../../../../contract/errors';
import { installTransferHandlers } from '../../../../contract/transfer-handlers';
import type { KernelBenchApi } from '../../../../engine/kernel-benchmark';
import type { KernelBenchOptions, KernelReport } from '../../../../models/wan22/benchmark/kernels';
import {
  deviceLine,
  isNumber,
  plain,
  reportTables,
  type Table,
} from '../../../../models/wan22/benchmark/kernels/tables';

declare global {
  interface Window {
    /** Measures and shows; null when it went through, else the sentence that says why not. */
    kinoraKernels?: (options: KernelBenchOptions) => Promise<string | null>;
    /** Where the driver takes the report so far. */
    kinoraKernelReport?: (report: KernelReport) => unknown;
  }
}

const part = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const runButton = part<HTMLButtonElement>('run');
const copyButton = part<HTMLButtonElement>('copy');
const state = part('state');
let report: KernelReport | undefined;

installTransferHandlers();
runButton.addEventListener('click', () => void measure({}));
copyButton.addEventListener('click', () => void copy());
window.kinoraKernels = measure;
document.body.dataset.ready = 'true';

async function measure(options: KernelBenchOptions): Promise<string | null> {
  runButton.disabled = true;
  state.textContent = 'Checking ONNX Runtime’s kernels …';
  const worker = new Worker(new URL('kernel-bench.js', import.meta.url), { type: 'module' });
  try {
    const died = new Promise<never>((_, reject) => {
      worker.addEventListener('error', ({ message }) => reject(new Error(message)));
    });
    const bench: Remote<KernelBenchApi> = wrap<KernelBenchApi>(worker);
    const model = new URL('model/', document.baseURI).href;
    await Promise.race([bench.run(model, options, proxy(show)), died]);
    state.textContent = 'Done.';
    return null;
  } catch (thrown) {
    const error = toKinoraError(thrown);
    state.textContent = `${error.message} ${error.remedy}`;
    return `${error.code}: ${error.message} ${error.remedy}`;
  } finally {
    worker.terminate();
    runButton.disabled = false;
  }
}

function show(next: KernelReport): void {
  report = next;
  copyButton.disabled = false;
  const last = next.lines.at(-1);
  if (last) state.textContent = `Measured ${last.case}: ${last.variant} …`;
  else if (next.selfTest.length > 0) state.textContent = 'Measuring …';
  const device = document.createElement('p');
  device.textContent = deviceLine(next);
  part('report').replaceChildren(device, ...reportTables(next).map(tableElement));
  void window.kinoraKernelReport?.(next);
}

async function copy(): Promise<void> {
  await navigator.clipboard.writeText(JSON.stringify(report, null, 2));
  state.textContent = 'Copied.';
}

function tableElement({ caption, columns, rows }: Table): HTMLElement {
  const frame = document.createElement('div');
  frame.className = 'table';
  // A wide table scrolls by keyboard, too.
  frame.tabIndex = 0;
  const table = document.createElement('table');
  table.createCaption().textContent = caption;
  const cell = (row: HTMLTableRowElement, tag: 'th' | 'td', text: string, column: string) => {
    const element = document.createElement(tag);
    if (tag === 'th') element.setAttribute('scope', 'col');
    if (isNumber(column)) element.className = 'number';
    element.textContent = text;
    row.append(element);
  };
  if (rows.length > 0) {
    const head = table.createTHead().insertRow();
    for (const column of columns) cell(head, 'th', plain(column), column);
    const body = table.createTBody();
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((text, i) => {
        cell(line, 'td', text, columns[i] ?? '');
      });
    }
  }
  frame.append(table);
  return frame;
}
