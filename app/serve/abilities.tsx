import Link from 'next/link';
import type { ModelEntry } from '../../lib/contract/library';
import { useLibrary } from '../library';
import { CheckerDownload, useChecker } from '../shared/checker';

/** Whether this browser has the safety checker and a language model, and which jobs it is not given without. */
export function Abilities({ model }: { model: ModelEntry }) {
  const library = useLibrary();
  const checker = useChecker(model.manifest.id);
  if (library.status !== 'ready') return null;
  const tool = library.snapshot.tools.find(({ ready }) => ready);
  return (
    <section className="panel" aria-labelledby="abilities-title">
      <h2 id="abilities-title">Safety check and prompt optimiser</h2>
      <dl className="facts">
        <div>
          <dt>Safety checker</dt>
          <dd>{checker.status === 'ready' ? 'ready' : 'not in this browser'}</dd>
        </div>
        <div>
          <dt>Language model</dt>
          <dd>{tool ? tool.manifest.name : 'not in this browser'}</dd>
        </div>
      </dl>
      {checker.status === 'absent' && (
        <>
          <p>
            {model.origin === 'bundled'
              ? 'The demonstration model takes jobs that ask for the check, and answers that nothing was checked.'
              : 'Jobs that ask for the safety check are not given to this tab.'}
          </p>
          <CheckerDownload checker={checker} />
        </>
      )}
      {!tool && (
        <p className="field-hint">
          Jobs that ask for the prompt optimiser come here only if no other worker has a language
          model, and then run with their own prompt.{' '}
          <Link href="/models#optimiser" prefetch={false}>
            Language models
          </Link>
        </p>
      )}
    </section>
  );
}
