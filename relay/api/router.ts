import { type Endpoint, endpoints, type OperationId } from '../../lib/contract/v3';
import { endpointOf } from './handler';

interface Template {
  readonly path: string;
  readonly segments: readonly string[];
  readonly operations: Map<string, OperationId>;
}

/** Where a request goes. */
export type Route =
  | {
      readonly kind: 'operation';
      readonly operation: OperationId;
      readonly endpoint: Endpoint;
      readonly params: unknown;
    }
  /** The path is known, the method is not for it. */
  | { readonly kind: 'method'; readonly allow: readonly string[]; readonly internal: boolean }
  | { readonly kind: 'nothing' };

const operationIds = Object.keys(endpoints) as OperationId[];

/** By number of segments, and in it the more literal template first. */
const templates = new Map<number, Template[]>();
for (const operation of operationIds) {
  const { path, method } = endpoints[operation];
  const segments = path.split('/').slice(1);
  const sameLength = templates.get(segments.length) ?? [];
  templates.set(segments.length, sameLength);
  let template = sameLength.find((other) => other.path === path);
  if (template === undefined) {
    template = { path, segments, operations: new Map() };
    sameLength.push(template);
  }
  template.operations.set(method, operation);
}
for (const sameLength of templates.values()) {
  sameLength.sort((a, b) => (literals(a) < literals(b) ? -1 : 1));
}

function literals(template: Template): string {
  return template.segments.map((segment) => (isParameter(segment) ? '1' : '0')).join('');
}

function isParameter(segment: string): boolean {
  return segment.startsWith('{');
}

/**
 * Finds the operation of a path. Parameters that do not fit their schema are no match: an id that
 * cannot exist is not found, like one that does not.
 *
 * @param method HEAD goes where GET goes
 * @param pathname as in the address, percent-encoded
 */
export function findRoute(method: string, pathname: string): Route {
  const segments = decodeSegments(pathname);
  if (segments === null) return { kind: 'nothing' };
  for (const template of templates.get(segments.length) ?? []) {
    const values = match(template.segments, segments);
    if (values === null) continue;
    const [first] = template.operations.values();
    if (first === undefined) continue;
    const checked = endpointOf(endpoints, first).params?.safeParse(values);
    if (checked?.success === false) continue;
    const operation = template.operations.get(method === 'HEAD' ? 'GET' : method);
    if (operation === undefined) {
      const allow = [...template.operations.keys()];
      if (allow.includes('GET')) allow.push('HEAD');
      const internal = endpointOf(endpoints, first).internal === true;
      return { kind: 'method', allow: [...allow, 'OPTIONS'], internal };
    }
    const endpoint = endpointOf(endpoints, operation);
    return { kind: 'operation', operation, endpoint, params: checked?.data ?? {} };
  }
  return { kind: 'nothing' };
}

function decodeSegments(pathname: string): string[] | null {
  try {
    return pathname.split('/').slice(1).map(decodeURIComponent);
  } catch {
    return null;
  }
}

function match(
  template: readonly string[],
  segments: readonly string[],
): Record<string, string> | null {
  const values: Record<string, string> = {};
  for (const [index, part] of template.entries()) {
    const segment = segments[index] ?? '';
    if (isParameter(part)) values[part.slice(1, -1)] = segment;
    else if (part !== segment) return null;
  }
  return values;
}
