import { languageModelsOf, type ModelEntry } from '../../lib/contract';
import { useLibrary } from '../library';
import { CheckerDownload, useChecker } from '../shared/checker';
import { Fact } from '../shared/fact';
import { Link } from '../shared/link';
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
        <Fact name={t('serve.checker')}>
          {checker.status === 'ready' ? t('serve.ready') : t('serve.absent')}
        </Fact>
        <Fact name={t('serve.languageModel')}>{tool ? tool.manifest.name : t('serve.absent')}</Fact>
      </dl>
      {checker.status === 'absent' && (
        <>
          <p>{model.origin === 'bundled' ? t('serve.demonstrationChecks') : t('serve.noChecks')}</p>
          <CheckerDownload checker={checker} />
        </>
      )}
      {!tool && (
        <p className="field-hint">
          {t('serve.noOptimizer')} <Link href="/models#optimiser">{t('serve.languageModels')}</Link>
        </p>
      )}
    </section>
  );
}
