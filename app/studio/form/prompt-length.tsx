import { t } from '../../texts';
import '../../texts/en/form';
import { type MeasuredPrompt, usePromptLength } from './use-prompt-length';

/** Characters of what is read, and of what is not, that the note shows. */
const shown = { before: 80, after: 400 } as const;

/** How many tokens a prompt has, and what of it the model does not read. */
export function PromptLengthNote(props: { id: string; text: string; model: string | null }) {
  const measured = usePromptLength(props.text, props.model);
  const isOver = measured !== null && measured.tokens > measured.limit;
  return (
    <div id={props.id}>
      {measured && (
        <p className="token-count muted text-s numbers" data-over={isOver || undefined}>
          {t('form.tokens', { tokens: measured.tokens, limit: measured.limit })}
        </p>
      )}
      <div role="status">{isOver && <CutText measured={measured} />}</div>
    </div>
  );
}

function CutText({ measured: { text, kept, limit } }: { measured: MeasuredPrompt }) {
  const start = Math.max(0, kept - shown.before);
  const end = kept + shown.after;
  return (
    <div className="info on-bad">
      <p>{t('form.tokensCut', { limit })}</p>
      <p className="token-text break mt-8">
        {start > 0 && '… '}
        {text.slice(start, kept)}
        <mark>{text.slice(kept, end)}</mark>
        {end < text.length && ' …'}
      </p>
    </div>
  );
}
