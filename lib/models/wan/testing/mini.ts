/** The bundled demonstration model, for tests in Node and in the browser. */
import type { ModelFolder } from '../../../weights';

/** The reference data of the bundled model with its weights, laid out like the goldens. */
export function withModel(references: ModelFolder, model: ModelFolder): ModelFolder {
  const prefix = 'model/';
  const at = (path: string) =>
    path.startsWith(prefix)
      ? ([model, path.slice(prefix.length)] as const)
      : ([references, path] as const);
  const call = <K extends keyof ModelFolder>(name: K) =>
    ((path: string) => {
      const [folder, inside] = at(path);
      return folder[name](inside);
    }) as ModelFolder[K];
  return { open: call('open'), text: call('text'), json: call('json'), exists: call('exists') };
}
