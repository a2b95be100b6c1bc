import { Fragment, type ReactNode } from 'react';
import { Table, Text } from '../parts';
import { nameOf, type Parameter, type Schema } from './document';

const columns = ['Name', 'Type', 'Meaning'] as const;

/** The fields of an object, those of inner objects by their path; a named schema has its own section. */
export function Fields({ label, schema }: { label: string; schema: Schema }) {
  const name = nameOf(schema);
  if (name !== undefined) {
    return (
      <p>
        {label}: <a href={`#schema-${name}`}>{name}</a>
      </p>
    );
  }
  return <Table label={label} columns={columns} rows={rowsOf(schema, '')} />;
}

/** The parameters of a request, by where they stand. */
export function Parameters(props: { label: string; parameters: readonly Parameter[] }) {
  const rows = props.parameters.map(
    ({ name, in: place, required = false, description, schema }) => [
      <Name key="name" name={name} required={required} />,
      <Fragment key="type">
        {place}: <Type schema={schema} />
      </Fragment>,
      <Prose key="meaning" text={description ?? ''} />,
    ],
  );
  return <Table label={props.label} columns={columns} rows={rows} />;
}

function rowsOf({ properties = {}, required = [] }: Schema, prefix: string): ReactNode[][] {
  return Object.entries(properties).flatMap(([key, schema]) => {
    const path = prefix + key;
    const [inner, suffix] = schema.items ? [schema.items, '[].'] : [schema, '.'];
    const row = [
      <Name key="name" name={path} required={required.includes(key)} />,
      <Type key="type" schema={schema} />,
      <Prose key="meaning" text={schema.description ?? ''} />,
    ];
    return [row, ...rowsOf(inner, path + suffix)];
  });
}

function Name({ name, required }: { name: string; required: boolean }) {
  return (
    <>
      <code>{name}</code> {required && <span className="field-hint">required</span>}
    </>
  );
}

/** A type in words, with its limits and its default. */
function Type({ schema }: { schema: Schema }) {
  const name = nameOf(schema);
  if (name !== undefined) return <a href={`#schema-${name}`}>{name}</a>;
  if (schema.items) {
    return (
      <>
        array of <Type schema={schema.items} />
      </>
    );
  }
  const values = schema.const === undefined ? schema.enum : [schema.const];
  const types = [schema.type ?? 'any'].flat().join(' or ');
  return (
    <>
      {values ? (
        <Text>{values.map((value) => `\`${JSON.stringify(value)}\``).join(', ')}</Text>
      ) : (
        [types, ...limitsOf(schema)].join(', ')
      )}
      {schema.default !== undefined && <Text>{`; \`${JSON.stringify(schema.default)}\``}</Text>}
      {schema.default !== undefined && ' when absent'}
    </>
  );
}

function limitsOf(schema: Schema): string[] {
  const { format, minimum, maximum, minLength, maxLength } = schema;
  const limits: string[] = format === undefined ? [] : [format];
  if (minimum !== undefined) limits.push(`from ${minimum}`);
  // JSON Schema's way to say "a whole number that a double holds".
  if (maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER) limits.push(`to ${maximum}`);
  if (minLength !== undefined) limits.push(`at least ${minLength} characters`);
  if (maxLength !== undefined) limits.push(`at most ${maxLength} characters`);
  return limits;
}

/** Paragraphs and lists of the document; backticks mark code. */
export function Prose({ text }: { text: string }) {
  return text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) =>
      block.startsWith('- ') ? (
        <ul key={block}>
          {block.split('\n').map((line) => (
            <li key={line}>
              <Text>{line.slice(2)}</Text>
            </li>
          ))}
        </ul>
      ) : (
        <p key={block}>
          <Text>{block}</Text>
        </p>
      ),
    );
}
