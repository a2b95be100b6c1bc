import type { PromptOptimization } from '../../../lib/contract/prompt-optimization';
import { showOpened } from '../../shared/browser';
import { t } from '../../texts';
import '../../texts/en/improve';
import { difference } from './difference';
import { outcomeText } from './optimization-text';

const elements = { same: 'span', added: 'ins', removed: 'del' } as const;

/** Two texts as one, with the words that were added and removed. */
export function Difference({ before, after }: { before: string; after: string }) {
  return (
    <p className="difference">
      {difference(before, after).map(({ kind, text }, index) => {
        const Element = elements[kind];
        // biome-ignore lint/suspicious/noArrayIndexKey: a piece is what it is by its place
        return <Element key={index}>{text}</Element>;
      })}
    </p>
  );
}

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
          <p className="prompt-text">{original}</p>
        </>
      )}
    </details>
  );
}
