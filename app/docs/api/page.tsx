import type { Metadata } from 'next';
import { appPath } from '../../../lib/contract';
import { Link } from '../../shared/link';
import { hasServer } from '../../shared/server';
import { Code } from '../parts';
import { type Answer, api, apiEndpoints, type Content, type Endpoint, referred } from './document';
import { Fields, Parameters, Prose } from './fields';
import { Send } from './send';

export const metadata: Metadata = { title: 'Endpoints · Kinora' };
export const dynamic = 'force-static';

const ofTag = (tag: string) => apiEndpoints.filter(({ tags }) => tags.includes(tag));

/** The reference of all endpoints, rendered from our openapi.json when the app is built. */
export default function Page() {
  return (
    <main id="main" tabIndex={-1} className="docs stack page-width gap-0 reference" lang="en">
      <header className="docs-head stack gap-14 prose">
        <h1>Endpoints</h1>
        <Prose text={api.info.description} />
        <p>
          <Link href="/docs">Quick start, errors, webhooks</Link>
          {' · '}
          <a href={appPath('/openapi.json')}>openapi.json</a>
        </p>
        {!hasServer && (
          <p className="panel">
            This copy of the app has no server: requests can be read here, and sent where Kinora
            runs with <code>npm start</code>.
          </p>
        )}
      </header>
      <nav className="contents" aria-label="Contents">
        <ol>
          {api.tags.map(({ name }) => (
            <li key={name}>
              <a href={`#${slug(name)}`}>{name}</a>
              <ol>
                {ofTag(name).map(({ id, summary }) => (
                  <li key={id}>
                    <a href={`#${id}`}>{summary}</a>
                  </li>
                ))}
              </ol>
            </li>
          ))}
          <li>
            <a href="#schemas">Schemas</a>
          </li>
        </ol>
      </nav>
      <article className="docs-text min-0">
        {api.tags.map(({ name, description }) => (
          <section key={name} aria-labelledby={slug(name)}>
            <h2 id={slug(name)}>{name}</h2>
            <Prose text={description} />
            {ofTag(name).map((endpoint) => (
              <OneEndpoint key={endpoint.id} endpoint={endpoint} />
            ))}
          </section>
        ))}
        <section aria-labelledby="schemas">
          <h2 id="schemas">Schemas</h2>
          {Object.entries(api.components.schemas).map(([name, schema]) => (
            <section
              key={name}
              className="endpoint stack gap-12"
              aria-labelledby={`schema-${name}`}
            >
              <h3 id={`schema-${name}`}>{name}</h3>
              <Prose text={schema.description ?? ''} />
              <Fields label={`Fields of ${name}`} schema={schema} />
            </section>
          ))}
        </section>
      </article>
    </main>
  );
}

function OneEndpoint({ endpoint }: { endpoint: Endpoint }) {
  const { id, method, path, summary, description = '', parameters, requestBody } = endpoint;
  return (
    <section className="endpoint stack gap-12" aria-label={`${method} ${path ?? 'your webhook'}`}>
      <h3 id={id}>{summary}</h3>
      <p>
        <code>
          <b>{method}</b> {path ?? 'your webhook'}
        </code>
      </p>
      <Prose text={description} />
      {parameters.length > 0 && (
        <Parameters label={`Parameters of ${id}`} parameters={parameters} />
      )}
      {requestBody && <Body label={`Body of ${id}`} content={requestBody.content} />}
      {Object.entries(endpoint.responses).map(([status, answer]) => (
        <Response
          key={status}
          id={id}
          status={status}
          answer={referred(answer, api.components.responses)}
        />
      ))}
      {hasServer && path !== null && (
        <Send
          method={method}
          path={path}
          parameters={parameters.map(({ name, in: place, example = '', required = false }) => {
            return { name, in: place, example: required ? String(example) : '', required };
          })}
          body={bodyOf(requestBody?.content)}
        />
      )}
    </section>
  );
}

function Response({ id, status, answer }: { id: string; status: string; answer: Answer }) {
  return (
    <details>
      <summary>
        Answer <code>{status}</code>
      </summary>
      <Prose text={answer.description} />
      {answer.content && <Body label={`Body of ${id}, ${status}`} content={answer.content} />}
    </details>
  );
}

function Body({ label, content }: { label: string; content: Content }) {
  return Object.entries(content).map(([type, { schema, example }]) => (
    <div key={type} className="stack gap-12">
      <Fields label={`${label}, ${type}`} schema={schema} />
      {example !== undefined && <Code label={`Example, ${type}`} text={textOf(example)} />}
    </div>
  ));
}

/** What a form to send begins with. */
function bodyOf(content: Content | undefined): string | null {
  if (!content) return null;
  const json = content['application/json'];
  return json ? textOf(json.example ?? {}) : 'file';
}

const textOf = (example: unknown) =>
  typeof example === 'string' ? example : JSON.stringify(example, null, 2);

const slug = (name: string) => name.toLowerCase().replaceAll(' ', '-');
