import { terms } from '../../lib/contract';
import { t, translatedTerms } from '../texts';

/** The terms of use. @param level of the headings */
export function TermsText({ level }: { level: 2 | 3 }) {
  const Heading = `h${level}` as const;
  return (translatedTerms() ?? terms).map(({ title, text, points, source }) => (
    <section key={title} className="terms-section stack gap-8 prose">
      <Heading>{title}</Heading>
      <p>{text}</p>
      {points.length > 0 && (
        <ul>
          {points.map((point) => (
            <li key={point}>{point}</li>
          ))}
        </ul>
      )}
      {source && (
        <p className="field-hint">
          {t.rich('shared.source', {
            link: () => (
              <a href={source.url} target="_blank" rel="noreferrer">
                {source.name}
              </a>
            ),
          })}
        </p>
      )}
    </section>
  ));
}
