import { useEffect, useState } from 'react';
import { ChoiceField } from '../shared/fields';
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
      <ChoiceField
        name="theme"
        legend={t('settings.theme')}
        options={themes}
        chosen={theme}
        show={(name) => <span>{t(`settings.${name}`)}</span>}
        onChange={setTheme}
      />
      <LanguageField />
    </section>
  );
}

function LanguageField() {
  const [chosen, setChosen] = useState<LanguageChoice>('system');
  // The server does not know it.
  useEffect(() => setChosen(languageChoice()), []);
  return (
    <ChoiceField
      name="language"
      legend={t('settings.language')}
      options={languageChoices}
      chosen={chosen}
      show={(choice) => (
        <span>{choice === 'system' ? t('settings.system') : languageNames[choice]}</span>
      )}
      onChange={(choice) => {
        setChosen(choice);
        // Without the texts, which the server could not send, the page stays as it is.
        chooseLanguage(choice).then(focusChosen, () => {});
      }}
    />
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
