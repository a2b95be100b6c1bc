import { type Endpoint, endpoints } from '../../lib/contract/v3';
import type { NodeHandler } from '../relay';

/** What a path leads to. */
export type Match =
  | {
      readonly found: 'handler';
      readonly handler: NodeHandler;
      readonly params: Readonly<Record<string, string>>;
      /** Name for metrics and logs: the operation, or method and template. Never the path itself. */
      readonly name: string;
    }
  /** The path is ours, the method is not. */
  | { readonly found: 'other-methods'; readonly allow: readonly string[] }
  | { readonly found: 'nothing' };

interface Route {
  readonly method: string;
  readonly segments: readonly string[];
  readonly handler: NodeHandler;
  readonly name: string;
}

/**
 * Finds handlers by method and path.
 *
 * @param table keys such as `PUT /files/uploads/{id}`; `{id}` is one segment that is not empty. A
 * template with fewer parameters wins. `HEAD` falls to the handler of `GET`.
 */
export function createRouter(
  table: Readonly<Record<string, NodeHandler>>,
): (method: string, path: string) => Match {
  const routes = Object.entries(table)
    .map(([key, handler]) => toRoute(key, handler))
    .toSorted((a, b) => parameterCount(a) - parameterCount(b));
  return (method, path) => {
    const segments = path.split('/');
    const fitting = routes.filter((route) => fits(route, segments));
    if (fitting.length === 0) return { found: 'nothing' };
    const route =
      fitting.find((candidate) => candidate.method === method) ??
      (method === 'HEAD' ? fitting.find((candidate) => candidate.method === 'GET') : undefined);
    if (route) {
      const { handler, name } = route;
      return { found: 'handler', handler, name, params: parametersOf(route, segments) };
    }
    const methods = new Set(fitting.map((candidate) => candidate.method));
    if (methods.has('GET')) methods.add('HEAD');
    return { found: 'other-methods', allow: [...methods.add('OPTIONS')] };
  };
}

function toRoute(key: string, handler: NodeHandler): Route {
  const [method = '', template = ''] = key.split(' ');
  if (!template.startsWith('/')) throw new TypeError(`${key} is not a method and a path.`);
  return { method, segments: template.split('/'), handler, name: nameOf(method, template) };
}

/** The operation of the contract where there is one. */
function nameOf(method: string, template: string): string {
  const operation = Object.entries<Endpoint>(endpoints).find(
    ([, endpoint]) => endpoint.method === method && endpoint.path === template,
  );
  return operation ? operation[0] : `${method} ${template}`;
}

const isParameter = (segment: string) => segment.startsWith('{') && segment.endsWith('}');

function parameterCount(route: Route): number {
  return route.segments.filter(isParameter).length;
}

function fits(route: Route, segments: readonly string[]): boolean {
  return (
    route.segments.length === segments.length &&
    route.segments.every((part, index) =>
      isParameter(part) ? segments[index] !== '' : part === segments[index],
    )
  );
}

function parametersOf(route: Route, segments: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    route.segments.flatMap((part, index) =>
      isParameter(part) ? [[part.slice(1, -1), decodeURIComponent(segments[index] ?? '')]] : [],
    ),
  );
}
