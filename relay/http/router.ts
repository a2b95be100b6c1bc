import { ApiError, type Endpoint, endpoints, isInternal, variants } from '../../lib/contract/v3';
import { shortened } from './input';

/** Requests outside of the API's operations, with their access: files, and the pages of links. */
const fileRoutes = {
  'PUT /files/uploads/{id}': 'anyone',
  'GET /files/uploads/{id}/{filename}': 'anyone',
  'GET /files/video/{file}': 'anyone',
  'GET /files/jobs/{id}/image': 'anyone',
  'GET /files/jobs/{id}/last_image': 'anyone',
  'GET /files/jobs/{id}/lora/{index}': 'anyone',
  'PUT /api/worker/jobs/{id}/output': 'worker',
  'PUT /api/admin/videos/{id}': 'admin',
  'HEAD /api/admin/videos/{id}': 'admin',
  'GET /s/{id}': 'anyone',
  'GET /s/{id}/embed': 'anyone',
  'GET /s/{id}/video.mp4': 'anyone',
  'GET /s/{id}/image': 'anyone',
  'GET /s/{id}/last-image': 'anyone',
  'GET /s/{id}/poster': 'anyone',
  'GET /s/{id}/request': 'anyone',
  'GET /oembed': 'anyone',
} as const satisfies Record<string, Endpoint['access']>;
export type FileRoute = keyof typeof fileRoutes;

export interface Route extends Omit<Endpoint, 'method' | 'summary'> {
  /** The operation, else method and template: for metrics and logs, which never hold a path itself. */
  readonly name: string;
  readonly method: string;
}

const routes: readonly Route[] = [
  ...Object.entries(fileRoutes).map(([name, access]): Route => {
    const [method = '', path = ''] = name.split(' ');
    return { name, method, path, access, bypassesNext: true };
  }),
  ...Object.entries<Endpoint>(endpoints).map(([name, endpoint]): Route => {
    return { name, ...(!isInternal(endpoint.path) && { limit: 'read' }), ...endpoint };
  }),
];

export type Match =
  | {
      readonly kind: 'found';
      readonly route: Route;
      readonly params: Readonly<Record<string, string>>;
    }
  /** The path is known, the method is not; `route` is one of the path's. */
  | { readonly kind: 'method'; readonly allow: readonly string[]; readonly route: Route }
  | { readonly kind: 'nothing' };

/** Literal segments win over parameters. */
const compiled = routes
  .map((route) => {
    const pattern = route.path.replaceAll('.', '\\.').replace(/\{(\w+)\}/g, '(?<$1>[^/]+)');
    const order = route.path.split('/').map((part) => (part.startsWith('{') ? '1' : '0'));
    return { route, pattern: new RegExp(`^${pattern}$`), order: order.join('') };
  })
  .toSorted((a, b) => (a.order < b.order ? -1 : 1));

/**
 * Finds a route by method and percent-encoded path; HEAD goes to the route of GET where it has none. Parameters that
 * do not fit are no match: an id that cannot exist is not found, like one that does not.
 */
export function findRoute(method: string, path: string): Match {
  const segments = path.split('/').length;
  // Few routes have as many: each expression that is tried costs a request some microseconds.
  const asLong = compiled.filter(({ order }) => order.length === segments);
  const fitting = asLong.flatMap(({ route, pattern }) => {
    const params = paramsOf(pattern.exec(path));
    const fits = params && route.params?.safeParse(params).success !== false;
    return fits ? [{ route, params }] : [];
  });
  const [first] = fitting;
  if (!first) return { kind: 'nothing' };
  const withMethod = (requested: string) => fitting.find(({ route }) => route.method === requested);
  const match = withMethod(method) ?? (method === 'HEAD' ? withMethod('GET') : undefined);
  if (match) return { kind: 'found', ...match };
  const allow = new Set(fitting.map(({ route }) => route.method));
  if (allow.has('GET')) allow.add('HEAD');
  return { kind: 'method', allow: [...allow.add('OPTIONS')], route: first.route };
}

/** The decoded parameters; null where the path does not match, or is not percent-encoded. */
function paramsOf(match: RegExpExecArray | null): Record<string, string> | null {
  if (match === null) return null;
  const encoded = Object.entries(match.groups ?? {});
  try {
    return Object.fromEntries(encoded.map(([name, text]) => [name, decodeURIComponent(text)]));
  } catch {
    return null;
  }
}

/**
 * The refusal of a path that leads nowhere: which part of it is wrong, and what there is.
 *
 * @param path percent-encoded
 * @param families `{provider}/{family}` of the models that this server offers
 */
export function notFound(path: string, families: readonly string[]): ApiError {
  const [, api, version, ...rest] = path.split('/').map(readable);
  if (api !== 'api' || version === undefined || !/^v[23]$/.test(version)) return nothingAt(path);
  const [first = '', second = '', third = ''] = rest;
  if (first === 'predictions' && rest.length >= 2) {
    if (second === '') return refusal('The id of the prediction is missing in the path.', idForm);
    return refusal(`"${second}" is not the id of a prediction.`, idForm);
  }
  if (rest.length !== 3 || ownNames.has(first)) return nothingAt(path);
  const family = `${first}/${second}`;
  if (!families.includes(family)) {
    const others = `This server has ${listed(families)}.`;
    return refusal(`There is no model family "${family}".`, others);
  }
  const others = `Its variants are ${listed(variants)}.`;
  return refusal(`The model family ${family} has no variant "${third}".`, others);
}

/** First parts of our own paths, such as `predictions`: whatever else stands there is a provider of models. */
const ownNames = new Set<string>(
  Object.values(endpoints).map(({ path }) => path.split('/')[3] ?? ''),
);

const idForm = 'An id has 32 lower-case hex characters, as `data.id` of a submission.';

const refusal = (sentence: string, remedy: string) =>
  new ApiError('NOT_FOUND', sentence, { remedy });
const nothingAt = (path: string) =>
  refusal(`There is nothing at ${readable(path)}.`, 'Compare the path with /docs/api.');

function listed(names: readonly string[]): string {
  if (names.length < 2) return names[0] ?? 'none';
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** A part of a path as a message repeats it: decoded, short, on one line. */
function readable(part: string): string {
  let text = part;
  try {
    text = decodeURIComponent(part);
  } catch {
    // The path stays as it came.
  }
  return shortened(text.replace(/[\p{Cc}\p{Surrogate}]/gu, '?'));
}
