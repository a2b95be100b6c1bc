import { typeInto } from '../../shared/browser';
import { Button } from '../../shared/button';
import { FieldNotes } from '../../shared/fields';
import { t } from '../../texts';
import '../../texts/en/form';
import { useFields } from './form-context';
import { negativePhrases, type Phrase, toggleList } from './phrases';

/** What the video should not show, with lists that a button adds and takes out. */
export function NegativePromptField() {
  const { values, model, resolved, set } = useFields();
  const { negative_prompt: value } = values;
  // Without guidance it is not used.
  const unused = resolved?.applied.guidance_scale === 1;
  const ofModel = model?.manifest.defaults.negative_prompt;
  const own: Phrase[] = ofModel ? [{ name: 'form.negative.own', text: ofModel }] : [];
  return (
    <div className="field" data-unused={unused || undefined}>
      <label htmlFor="negative_prompt">{t('form.negativePrompt')}</label>
      <textarea
        id="negative_prompt"
        rows={2}
        placeholder={t('form.negativePlaceholder')}
        value={value}
        aria-describedby={unused ? 'negative_prompt-hint' : undefined}
        onChange={(event) => set({ negative_prompt: event.target.value })}
      />
      <p className="words">
        {[...own, ...negativePhrases].map(({ name, text }) => (
          <Button
            key={name}
            className="word"
            title={text}
            aria-pressed={value.includes(text)}
            onClick={() => typeInto('negative_prompt', toggleList(value, text))}
          >
            {t(name)}
          </Button>
        ))}
      </p>
      <FieldNotes id="negative_prompt" hint={unused ? t('form.negativeUnused') : undefined} />
    </div>
  );
}
