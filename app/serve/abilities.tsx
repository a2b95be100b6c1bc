import Link from 'next/link';
import { languageModelsOf, type ModelEntry } from '../../lib/contract';
import { useLibrary } from '../library';
import { CheckerDownload, useChecker } from '../shared/checker';
import { t } from '../texts';
import '../texts/en/serve';

/** Whether this browser has the safety checker and a language model, and which jobs it is not given without. */
export function Abilities({ model }: { model: ModelEntry }) {
  const library = useLibrary();
  const checker = useChecker(model.manifest.id);
  if (library.status !== 'ready') return null;
  const tool = languageModelsOf(library.snapshot.tools).find(({ ready }) => ready);
  return (
    <section className="panel" aria-labelledby="abilities-title">
      <h2 id="abilities-title">{t('serve.abilities')}</h2>
      <dl className="facts">
        <div>
          <dt>{t('serve.checker')}</dt>
          <dd>{checker.status === 'ready' ? t('serve.ready') : t('serve.absent')}</dd>
        </div>
        <div>
          <dt>{t('serve.languageModel')}</dt>
          <dd>{tool ? tool.manifest.name : t('serve.absent')}</dd>
        </div>
      </dl>
      {checker.status === 'absent' && (
        <>
          <p>{model.origin === 'bundled' ? t('serve.demonstrationChecks') : t('serve.noChecks')}</p>
          <CheckerDownload checker={checker} />
        </>
      )}
      {!tool && (
        <p className="field-hint">
          {t('serve.noOptimizer')}{' '}
          <Link href="/models#optimiser" prefetch={false}>
            {t('serve.languageModels')}
          </Link>
        </p>
      )}
    </section>
  );
}
