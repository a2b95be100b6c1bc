import { maxPromptLength } from '../../lib/contract/request';
import { Section, Table } from './parts';
import { limitFacts } from './settings';

/** What callers run into; whoever runs the server may have set other numbers. */
export function Limits() {
  return (
    <Section id="limits" title="Limits">
      <p>
        Defaults; a server may have others. Answers carry <code>RateLimit-Limit</code>,{' '}
        <code>RateLimit-Remaining</code> and <code>RateLimit-Reset</code>; a 429 says in{' '}
        <code>Retry-After</code> how many seconds to wait.
      </p>
      <Table
        label="Settings and their defaults"
        columns={['Setting', 'Default', 'Meaning']}
        rows={limitFacts.map(({ name, shown, meaning }) => [
          <code key={name}>{name}</code>,
          shown,
          meaning,
        ])}
      />
      <p>
        <code>prompt</code> and <code>negative_prompt</code> have at most{' '}
        {maxPromptLength.toLocaleString('en')} characters each; longer ones are refused. The model
        reads the first 512 tokens of each.
      </p>
    </Section>
  );
}
