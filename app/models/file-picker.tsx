import { type ChangeEvent, type DragEvent, type ReactNode, useRef, useState } from 'react';
import { type ErrorRecord, type LocalFile, toKinoraError } from '../../lib/contract';
import { Button } from '../shared/button';
import { Problem } from '../shared/messages';
import { t } from '../texts';
import '../texts/en/models';
import { readDropped, readPicked } from './local-files';

/** The types of React do not have this attribute. */
const wholeFolder = { webkitdirectory: '' };

export interface FilePickerProps {
  /** What is wanted, for screen readers: "of the model". */
  what: string;
  accept: string;
  folders?: boolean;
  multiple?: boolean;
  disabled?: boolean;
  children: ReactNode;
  onFiles: (files: LocalFile[]) => void;
}

/** Takes files from this computer: a folder, single files, or whatever is dropped here. */
export function FilePicker(props: FilePickerProps) {
  const { what, accept, folders = false, multiple = false, disabled, children, onFiles } = props;
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState<ErrorRecord | null>(null);
  const folder = useRef<HTMLInputElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const choose = (event: ChangeEvent<HTMLInputElement>) => {
    const picked = readPicked(event.target.files ?? []);
    event.target.value = ''; // the same files may be chosen again
    // The library reports why a folder brings none.
    if (picked.length > 0 || event.target === folder.current) onFiles(picked);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    setProblem(null);
    if (disabled) return;
    readDropped(event.dataTransfer).then(onFiles, (thrown: unknown) =>
      setProblem(toKinoraError(thrown).toRecord()),
    );
  };
  return (
    <section
      className="drop-zone stack rounded on-sunken"
      aria-label={t('models.filesHere', { what })}
      data-over={over}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(!disabled);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <p className="field-hint">{children}</p>
      <div className="actions">
        {folders && (
          <Button disabled={disabled} onClick={() => folder.current?.click()}>
            {t('models.chooseFolder')}
          </Button>
        )}
        <Button disabled={disabled} onClick={() => files.current?.click()}>
          {multiple ? t('models.chooseFiles') : t('models.chooseFile')}
        </Button>
      </div>
      {problem && <Problem error={problem} />}
      {folders && (
        <input
          ref={folder}
          className="visually-hidden"
          type="file"
          {...wholeFolder}
          aria-label={t('models.folderOf', { what })}
          tabIndex={-1}
          onChange={choose}
        />
      )}
      <input
        ref={files}
        className="visually-hidden"
        type="file"
        multiple={multiple}
        accept={accept}
        aria-label={t('models.singleFiles', { what })}
        tabIndex={-1}
        onChange={choose}
      />
    </section>
  );
}
