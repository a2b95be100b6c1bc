import type { PromptOptimization } from '../../../lib/contract';
import { showOpened } from '../../shared/browser';
import { t } from '../../texts';
import '../../texts/en/improve';
import { outcomeText } from './optimization-text';

/** How the prompt of a result was improved, and the original; the result shows the other text. */
export function PromptRecord({ optimization }: { optimization: PromptOptimization }) {
  const { original, text } = optimization;
  return (
    <details className="prompt-record" onToggle={showOpened}>
      <summary>{t('improve.optimizer')}</summary>
      <p className="field-hint">{outcomeText(optimization)}</p>
      {original !== text && (
        <>
          <p className="field-hint">{t('improve.asWritten')}</p>
          <p className="break">{original}</p>
        </>
      )}
    </details>
  );
}
