import { useState } from 'react';
import { appPath } from '../../../lib/contract';
import { Button } from '../../shared/button';
import { Picture } from '../../shared/icons';
import { t } from '../../texts';
import '../../texts/en/form';
import { loadData } from '../use-data';
import { CameraMoves } from './camera-moves';
import { type Example, examples } from './examples';

const tools = ['camera', 'history', 'examples'] as const;
type Tool = (typeof tools)[number];

/** What helps to write a prompt: camera moves, the prompts of earlier videos, and whole examples. */
export function PromptTools(props: {
  prompt: string;
  disabled: boolean;
  /** The prompt was edited. */
  onPrompt: (prompt: string) => void;
  /** Another prompt takes its place. */
  onReplace: (prompt: string) => void;
  onExample: (example: Example) => void;
}) {
  const { prompt, disabled, onPrompt, onReplace, onExample } = props;
  const [open, setOpen] = useState<Tool | null>(null);
  const [earlier, setEarlier] = useState<readonly string[]>([]);

  async function toggle(tool: Tool): Promise<void> {
    if (tool === 'history' && open !== tool) setEarlier(await earlierPrompts());
    setOpen(open === tool ? null : tool);
  }

  return (
    <div className="prompt-tools">
      <div className="words">
        {tools.map((tool) => (
          <Button
            key={tool}
            className="word"
            aria-expanded={open === tool}
            aria-controls="prompt-tool"
            onClick={() => void toggle(tool)}
          >
            {t(`form.promptTools.${tool}`)}
          </Button>
        ))}
      </div>
      <section
        id="prompt-tool"
        aria-label={open ? t(`form.promptTools.${open}`) : undefined}
        hidden={!open}
      >
        {open === 'camera' && (
          <CameraMoves prompt={prompt} disabled={disabled} onPrompt={onPrompt} />
        )}
        {open === 'history' && (
          <Earlier
            prompts={earlier}
            disabled={disabled}
            onChoose={(text) => {
              onReplace(text);
              setOpen(null);
            }}
          />
        )}
        {open === 'examples' && (
          <ul className="examples stack gap-8 halves">
            {examples.map((example) => (
              <li key={example.picture}>
                <Button
                  disabled={disabled}
                  onClick={() => {
                    onExample(example);
                    setOpen(null);
                  }}
                >
                  <Picture src={appPath(example.picture)} alt="" width={1280} height={720} />
                  {t(example.name)}
                </Button>
              </li>
            ))}
          </ul>
        )}
      </section>
    </div>
  );
}

function Earlier(props: {
  prompts: readonly string[];
  disabled: boolean;
  onChoose: (prompt: string) => void;
}) {
  const { prompts, disabled, onChoose } = props;
  if (prompts.length === 0) return <p className="field-hint">{t('form.noVideos')}</p>;
  return (
    <ul className="earlier stack gap-4">
      {prompts.map((prompt) => (
        <li key={prompt}>
          <Button disabled={disabled} onClick={() => onChoose(prompt)}>
            {prompt}
          </Button>
        </li>
      ))}
    </ul>
  );
}

/** Most prompts that are listed. */
const maxEarlier = 50;

/** The prompts of the videos of this browser, each once, the newest first. */
async function earlierPrompts(): Promise<readonly string[]> {
  const { getRunner } = await loadData();
  const predictions = await getRunner()
    .store.list()
    .catch(() => []); // The page says itself that the database cannot be read.
  const prompts = predictions.map(({ parameters }) => parameters.prompt);
  return [...new Set(prompts)].slice(0, maxEarlier);
}
