import type { TuningResult } from '../../../../gpu/kernels/tune';
import type { KernelLine, KernelReport } from '.';

/** A table for the terminal, the page and Markdown. */
export interface Table {
  readonly caption: string;
  /** A name that starts with `#` is above numbers. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** One line that says what was measured on what. */
export function deviceLine({ device, browser }: KernelReport): string {
  const { vendor, architecture, device: name, description } = device.adapter;
  const words = [vendor, architecture, name, description].filter(Boolean);
  const emulated = device.software ? ', computed by the CPU: only ratios mean anything' : '';
  const [version = browser] = /(?:Chrome|Firefox|Version)\/[\d.]+/.exec(browser) ?? [];
  return `${[...new Set(words)].join(' ') || 'unknown GPU'}${emulated}; ${version}`;
}

/** What a report begins with: device, system and date, and what decides which kernels run. */
export function reportHead(device: KernelReport | undefined, about: string): string {
  const lines = device
    ? [deviceLine(device), about, capabilities(device)]
    : ['The device is not known.', about];
  return ['# Kinora on a graphics card', lines.join('  \n')].join('\n\n');
}

/**
 * A report as the text of an issue. It names graphics card, browser and system.
 *
 * @param kinora the version
 */
export function reportText(report: KernelReport, kinora: string): string {
  const [, system = 'unknown system'] = /\(([^)]*)\)/.exec(report.browser) ?? [];
  const about = `${system}, ${report.date.slice(0, 10)}, Kinora ${kinora}`;
  return `${[reportHead(report, about), ...reportTables(report).map(tableMarkdown)].join('\n\n')}\n`;
}

/** What decides which kernels a device can run. */
function capabilities({ device, modes, languageFeatures, refused }: KernelReport): string {
  const { features, limits } = device;
  const mebibytes = (name: string) => `${Math.round((limits[name] ?? 0) / 2 ** 20)} MiB`;
  const reported = [
    ...['shader-f16', 'subgroups', 'chromium-experimental-subgroup-matrix'],
    ...['packed_4x8_integer_dot_product', 'immediate_address_space'],
  ];
  const has = reported.filter((name) => [...features, ...languageFeatures].includes(name));
  const workgroup = Math.round((limits.maxComputeWorkgroupStorageSize ?? 0) / 1024);
  return (
    `Modes: ${modes.join(', ')}. Workgroup memory ${workgroup} KiB, ` +
    `binding ${mebibytes('maxStorageBufferBindingSize')}, buffer ${mebibytes('maxBufferSize')}. ` +
    `Has: ${has.join(', ')}.` +
    (refused.length > 0
      ? ` Used without ${refused.join(', ')}: with it the self-test gives wrong numbers.`
      : '')
  );
}

/** The tables of a report; those of which nothing is known yet are left out. */
export function reportTables(report: KernelReport): Table[] {
  const tables: Table[] = [];
  const wrong = report.selfTest.filter(({ usable }) => !usable);
  if (report.selfTest.length > 0) {
    tables.push({
      caption: `Self-test: ${report.selfTest.length - wrong.length} of ${report.selfTest.length} kernels of ONNX Runtime are right`,
      columns: ['kernel', '#difference'],
      rows: wrong.map(({ kernel, relativeError }) => [kernel, relativeError.toExponential(1)]),
    });
  }
  if (report.peak) {
    const { multiplyAdd, integerDot } = report.peak;
    tables.push({
      caption: 'Peak of the arithmetic, measured on registers',
      columns: ['arithmetic', '#10⁹ per second'],
      rows: [
        ['f32 multiply-add', giga(multiplyAdd)],
        ['8-bit dot product', integerDot === null ? 'not there' : giga(integerDot)],
      ],
    });
  }
  for (const [mode, tuned] of Object.entries(report.tuning)) {
    tables.push(tuningTable(mode, tuned));
  }
  for (const name of new Set(report.lines.map((line) => line.case))) {
    const lines = report.lines.filter((line) => line.case === name);
    tables.push({
      caption: `${name[0]?.toUpperCase()}${name.slice(1)}: ${lines[0]?.size ?? ''}`,
      columns: [
        'kernel',
        'mode',
        '#ms median',
        '#ms',
        '#GFLOP/s',
        '#of the peak',
        '#of the runtime',
        '#difference',
      ],
      rows: lines.map((line) => kernelRow(line, lines)),
    });
  }
  if (report.blocks.length > 0) {
    tables.push({
      caption: `A whole block of the transformer, ${report.blocks[0]?.tokens} tokens`,
      columns: ['mode', '#ms median', '#ms', '#GFLOP/s'],
      rows: report.blocks.map(({ mode, seconds, rate }) => [
        mode,
        short(seconds.median * 1000),
        short(seconds.truest * 1000),
        giga(rate),
      ]),
    });
  }
  if (report.decoder) {
    const { seconds, flopPerSecond } = report.decoder;
    tables.push({
      caption: 'Small decoder, two latent frames of 1280×704',
      columns: ['mode', '#ms', '#GFLOP/s'],
      rows: [['exact', short(seconds * 1000), giga(flopPerSecond)]],
    });
  }
  if (report.projections.length > 0) {
    const tokens = report.blocks[0]?.tokens;
    const error = tokens
      ? `; error: of the same projection for the block of ${tokens} tokens above`
      : '';
    tables.push({
      caption: `Projected to 1280×704×121, which is 5 seconds${error}`,
      columns: [
        'mode',
        '#one block',
        '#one pass',
        '#4 steps',
        '#30 steps',
        '#full decoder',
        '#error',
      ],
      rows: report.projections.map((projection) => [
        projection.mode,
        duration(projection.blockSeconds),
        duration(projection.passSeconds),
        duration(projection.fourStepsSeconds),
        duration(projection.thirtyStepsSeconds),
        projection.decodeSeconds === null ? 'not measured' : duration(projection.decodeSeconds),
        projection.error === null ? '' : percent(projection.error),
      ]),
    });
  }
  return tables;
}

/** What became of each variant. */
function tuningTable(mode: string, { tried, winners }: TuningResult): Table {
  const won = new Set(Object.values(winners).flatMap((winner) => (winner ? [winner.key] : [])));
  return {
    caption: `Check and tuning of our variants, ${mode}`,
    columns: ['family', 'variant', '#GFLOP/s', 'outcome'],
    rows: tried.map(({ family, name, key, rate, reason }) => [
      family,
      name,
      rate === null ? '' : giga(rate),
      reason ?? (won.has(key) ? 'chosen' : 'right'),
    ]),
  };
}

function kernelRow(line: KernelLine, lines: readonly KernelLine[]): string[] {
  const { variant, mode, seconds, rate, share, difference, reason } = line;
  if (!seconds || rate === null) return [variant, mode, reason ?? '', '', '', '', '', ''];
  const runtime = lines.find((other) => other.mode === 'runtime')?.rate;
  return [
    variant,
    mode === 'runtime' ? '' : mode,
    short(seconds.median * 1000),
    short(seconds.truest * 1000),
    giga(rate),
    share === null ? '' : `${(100 * share).toFixed(0)} %`,
    runtime && mode !== 'runtime' ? `${(rate / runtime).toPrecision(2)}×` : '',
    difference === null ? '' : difference.toExponential(1),
  ];
}

/** Three digits, or more in front of the point. */
const short = (value: number) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));

const percent = (part: number) => `${part > 0 ? '+' : ''}${(100 * part).toFixed(0)} %`;

const giga = (perSecond: number) => short(perSecond / 1e9);

/** Seconds, minutes or hours. */
export function duration(seconds: number): string {
  if (seconds < 120) return `${short(seconds)} s`;
  if (seconds < 7200) return `${short(seconds / 60)} min`;
  return `${short(seconds / 3600)} h`;
}

/** Whether the cells of a column are numbers. */
export const isNumber = (column: string) => column.startsWith('#');
/** The name of a column. */
export const plain = (column: string) => column.replace(/^#/, '');

/** For a terminal. */
export function tableText({ caption, columns, rows }: Table): string {
  const all = [columns.map(plain), ...rows];
  const widths = columns.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0)));
  const lines = rows.length > 0 ? all : [];
  return [
    caption,
    ...lines.map((row) =>
      row
        .map((cell, i) => {
          const width = widths[i] ?? 0;
          return isNumber(columns[i] ?? '') ? cell.padStart(width) : cell.padEnd(width);
        })
        .join('  ')
        .trimEnd(),
    ),
  ].join('\n');
}

/** For a Markdown file. */
export function tableMarkdown({ caption, columns, rows }: Table): string {
  if (rows.length === 0) return `**${caption}**`;
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  const rules = columns.map((column) => (isNumber(column) ? '---:' : '---'));
  return [`**${caption}**`, '', line(columns.map(plain)), line(rules), ...rows.map(line)].join(
    '\n',
  );
}
