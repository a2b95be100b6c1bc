import { useEffect, useState } from 'react';
import { Choice } from '../shared/fields';
import { setTheme, themes, useTheme } from '../shared/theme';
import { t } from '../texts';
import '../texts/en/settings';
import { languageNames, languages } from '../texts/catalogue';
import { chooseLanguage, type LanguageChoice, languageChoice } from '../texts/language-store';

const languageChoices: readonly LanguageChoice[] = ['system', ...languages];

/** Colours and language of all pages. */
export function Appearance() {
  const theme = useTheme();
  return (
    <section className="panel" aria-labelledby="appearance-title">
      <h2 id="appearance-title">{t('settings.appearance')}</h2>
      <fieldset className="field">
        <legend>{t('settings.theme')}</legend>
        <div className="choices">
          {themes.map((name) => (
            <Choice
              key={name}
              name="theme"
              value={name}
              checked={theme === name}
              onChange={() => setTheme(name)}
            >
              <span>{t(`settings.${name}`)}</span>
            </Choice>
          ))}
        </div>
      </fieldset>
      <LanguageField />
    </section>
  );
}

function LanguageField() {
  const [chosen, setChosen] = useState<LanguageChoice>('system');
  // The server does not know it.
  useEffect(() => setChosen(languageChoice()), []);
  return (
    <fieldset className="field">
      <legend>{t('settings.language')}</legend>
      <div className="choices">
        {languageChoices.map((choice) => (
          <Choice
            key={choice}
            name="language"
            value={choice}
            checked={chosen === choice}
            onChange={() => {
              setChosen(choice);
              // Without the texts, which the server could not send, the page stays as it is.
              chooseLanguage(choice).then(focusChosen, () => {});
            }}
          >
            <span>{choice === 'system' ? t('settings.system') : languageNames[choice]}</span>
          </Choice>
        ))}
      </div>
    </fieldset>
  );
}

/** Gives the focus back: the page was rendered anew, and the field that had it is gone. */
function focusChosen(): void {
  requestAnimationFrame(() => {
    document
      .querySelector<HTMLInputElement>(`[name="language"][value="${languageChoice()}"]`)
      ?.focus();
  });
}
