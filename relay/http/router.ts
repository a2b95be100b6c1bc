import type { IncomingMessage, ServerResponse } from 'node:http';
import type { z } from 'zod';
import { type Endpoint, endpoints, type OperationId } from '../../lib/contract/v3';

/** A handler of the Node server for what does not go through Next. `params` come from the path. */
export type NodeHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  params: Readonly<Record<string, string>>,
) => Promise<void>;

interface Route<Target> {
  readonly method: string;
  /** Template such as `/files/uploads/{id}`; a parameter is one segment that is not empty. */
  readonly path: string;
  /** Parameters that do not fit are no match: an id that cannot exist is not found, like one that does not. */
  readonly params?: z.ZodObject | undefined;
  readonly target: Target;
}

export type Match<Target> =
  | {
      readonly kind: 'found';
      readonly target: Target;
      readonly params: Readonly<Record<string, string>>;
    }
  /** The path is known, the method is not; `target` is one of the path's. */
  | { readonly kind: 'method'; readonly allow: readonly string[]; readonly target: Target }
  | { readonly kind: 'nothing' };

/**
 * Finds routes by method and percent-encoded path. Literal segments win over parameters; HEAD goes to the
 * route of GET.
 */
function createRouter<Target>(
  routes: readonly Route<Target>[],
): (method: string, path: string) => Match<Target> {
  const compiled = routes
    .map((route) => {
      const segments = route.path.split('/');
      const order = segments.map((segment) => (isParameter(segment) ? '1' : '0')).join('');
      return { route, segments, order };
    })
    .toSorted((a, b) => (a.order < b.order ? -1 : 1));
  return (method, path) => {
    const segments = decodeSegments(path);
    if (segments === null) return { kind: 'nothing' };
    const fitting = compiled.flatMap(({ route, segments: template }) => {
      const params = match(template, segments);
      const fits = params && route.params?.safeParse(params).success !== false;
      return fits ? [{ ...route, params }] : [];
    });
    const [first] = fitting;
    if (!first) return { kind: 'nothing' };
    const withMethod = (wanted: string) => fitting.find((route) => route.method === wanted);
    const route = withMethod(method) ?? (method === 'HEAD' ? withMethod('GET') : undefined);
    if (route) return { kind: 'found', target: route.target, params: route.params };
    const allow = new Set(fitting.map((route) => route.method));
    if (allow.has('GET')) allow.add('HEAD');
    return { kind: 'method', allow: [...allow.add('OPTIONS')], target: first.target };
  };
}

function isParameter(segment: string): boolean {
  return segment.startsWith('{');
}

function decodeSegments(path: string): string[] | null {
  try {
    return path.split('/').map(decodeURIComponent);
  } catch {
    // Not percent-encoded: no route.
    return null;
  }
}

function match(
  template: readonly string[],
  segments: readonly string[],
): Record<string, string> | null {
  if (template.length !== segments.length) return null;
  const values: Record<string, string> = {};
  for (const [index, part] of template.entries()) {
    const segment = segments[index] ?? '';
    if (isParameter(part) && segment !== '') values[part.slice(1, -1)] = segment;
    else if (part !== segment) return null;
  }
  return values;
}

export const findOperation = createRouter<OperationId>(
  (Object.keys(endpoints) as OperationId[]).map((operation) => {
    const { method, path, params }: Endpoint = endpoints[operation];
    return { method, path, params, target: operation };
  }),
);

/** A handler of the Node server, and its name in metrics and logs, which never hold a path itself. */
export interface NodeTarget {
  readonly handler: NodeHandler;
  /** The operation where there is one, else method and template. */
  readonly name: string;
}

/** @param table keys such as `PUT /files/uploads/{id}` */
export function createNodeRouter(table: Readonly<Record<string, NodeHandler>>) {
  return createRouter<NodeTarget>(
    Object.entries(table).map(([name, handler]) => {
      const [method = '', path = ''] = name.split(' ');
      const operation = Object.entries<Endpoint>(endpoints).find(
        ([, endpoint]) => endpoint.method === method && endpoint.path === path,
      );
      return { method, path, target: { handler, name: operation?.[0] ?? name } };
    }),
  );
}
