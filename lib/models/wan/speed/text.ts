import type { TuningResult } from '../../../gpu/kernels/tune';
import type { Measured, SpeedLine, SpeedReport } from './report';

/** A table, for Markdown. */
interface Table {
  readonly caption: string;
  /** A name that starts with `#` is above numbers. A column without content is left out. */
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** One line that says what was measured on what. */
function deviceLine({ device, browser }: SpeedReport): string {
  const { vendor, architecture, device: name, description } = device?.adapter ?? {};
  const words = [vendor, architecture, name, description].filter(Boolean);
  const emulated = device?.software ? ', computed by the CPU: only ratios mean anything' : '';
  const gpu = `${[...new Set(words)].join(' ') || 'unknown GPU'}${emulated}`;
  const [version = browser] = /(?:Chrome|Firefox|Version)\/[\d.]+/.exec(browser) ?? [];
  return `${device ? gpu : 'CPU, by ONNX Runtime'}; ${version}`;
}

/**
 * A report as the text of an issue. It names graphics card, browser and system.
 *
 * @param kinora the version
 */
export function reportText(report: SpeedReport, kinora: string): string {
  const [, system = 'unknown system'] = /\(([^)]*)\)/.exec(report.browser) ?? [];
  const head = [
    deviceLine(report),
    `${system}, ${report.date.slice(0, 10)}, Kinora ${kinora}`,
    ...(report.device ? [capabilities(report)] : []),
  ];
  const title = `# Kinora on a ${report.device ? 'graphics card' : 'CPU'}`;
  return `${[title, head.join('  \n'), ...tables(report).map(markdown)].join('\n\n')}\n`;
}

/** What decides which kernels a device can run. */
function capabilities({ device, modes, languageFeatures, refused }: SpeedReport): string {
  const { features = [], limits = {} } = device ?? {};
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

const titles: Readonly<Record<Measured, string>> = {
  linear: 'Query, key, value, output',
  attention: 'Self-attention',
  convolution: 'Decoder, 3×3',
  block: 'A whole block of the transformer',
  frame: 'Small decoder',
  decoder: 'Full decoder',
  video: 'A video, every block as the first, with the small decoder',
};

/** The tables of a report; those of which nothing is known yet are left out. */
function tables(report: SpeedReport): Table[] {
  const { selfTest, peak, tuning, lines, projections, outcomes } = report;
  const found: Table[] = [];
  const wrong = selfTest.filter(({ usable }) => !usable);
  if (selfTest.length > 0) {
    found.push({
      caption: `Self-test: ${selfTest.length - wrong.length} of ${selfTest.length} kernels of ONNX Runtime are right`,
      columns: ['kernel', '#difference'],
      rows: wrong.map(({ kernel, relativeError }) => [kernel, relativeError.toExponential(1)]),
    });
  }
  if (peak) {
    found.push({
      caption: 'Peak of the arithmetic, measured on registers',
      columns: ['arithmetic', '#10⁹ per second'],
      rows: [
        ['f32 multiply-add', giga(peak.multiplyAdd)],
        ['8-bit dot product', peak.integerDot === null ? 'not there' : giga(peak.integerDot)],
      ],
    });
  }
  for (const [mode, tuned] of Object.entries(tuning)) found.push(tuningTable(mode, tuned));
  for (const measurement of new Set(lines.map((line) => line.measurement))) {
    const own = lines.filter((line) => line.measurement === measurement);
    found.push({
      caption: `${titles[measurement]}: ${own[0]?.size ?? ''}`,
      columns: [
        ...['kernel', 'mode', '#ms median', '#ms', '#GFLOP/s', '#of the peak'],
        ...['#of the runtime', '#difference', '#ms projected', '#error', 'outcome'],
      ],
      rows: own.map((line) => lineCells(line, own)),
    });
  }
  if (projections.length > 0) {
    found.push({
      caption: 'Projected to 1280×704×121, which is 5 seconds',
      columns: ['mode', ...Object.keys(projections[0]?.seconds ?? {}).map((name) => `#${name}`)],
      rows: projections.map(({ mode, seconds }) => {
        const cell = (value: number | null) => (value === null ? 'not measured' : duration(value));
        return [mode, ...Object.values(seconds).map(cell)];
      }),
    });
  }
  if (outcomes.length > 0) {
    found.push({
      caption: 'What was run',
      columns: ['measurement', '#seconds', 'problem'],
      rows: outcomes.map(({ name, seconds, problem }) => [name, seconds.toFixed(0), problem ?? '']),
    });
  }
  return found;
}

/** The outcome of each variant. */
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

function lineCells(line: SpeedLine, lines: readonly SpeedLine[]): string[] {
  const { variant, mode, seconds, rate, share, difference, projected, reason } = line;
  const runtime = lines.find((other) => other.mode === 'runtime')?.rate;
  const shown = <T>(value: T | null, text: (value: T) => string) =>
    value === null ? '' : text(value);
  return [
    variant,
    mode === 'runtime' && variant ? '' : mode,
    shown(seconds, ({ median }) => short(median * 1000)),
    shown(seconds, ({ truest }) => short(truest * 1000)),
    shown(rate, giga),
    shown(share, (part) => `${(100 * part).toFixed(0)} %`),
    rate && runtime && mode !== 'runtime' ? `${(rate / runtime).toPrecision(2)}×` : '',
    shown(difference, (error) => error.toExponential(1)),
    shown(projected, (time) => short(time * 1000)),
    projected && seconds ? percent(projected / seconds.truest - 1) : '',
    reason ?? '',
  ];
}

/** Three digits, or more in front of the point. */
const short = (value: number) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));

const percent = (part: number) => `${part > 0 ? '+' : ''}${(100 * part).toFixed(0)} %`;

const giga = (perSecond: number) => short(perSecond / 1e9);

/** Seconds, minutes or hours. */
function duration(seconds: number): string {
  if (seconds < 120) return `${short(seconds)} s`;
  if (seconds < 7200) return `${short(seconds / 60)} min`;
  return `${short(seconds / 3600)} h`;
}

function markdown({ caption, columns, rows }: Table): string {
  if (rows.length === 0) return `**${caption}**`;
  const used = columns.flatMap((_, i) => (rows.some((row) => row[i]) ? [i] : []));
  const line = (cells: readonly string[]) => {
    const shown = used.map((i) => cells[i] ?? '');
    return `| ${shown.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`;
  };
  const head = line(columns.map((column) => column.replace(/^#/, '')));
  const rules = line(columns.map((column) => (column.startsWith('#') ? '---:' : '---')));
  return [`**${caption}**`, '', head, rules, ...rows.map(line)].join('\n');
}
