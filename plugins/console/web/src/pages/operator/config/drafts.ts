/** The texts of the files as they are being edited, by the forms and by hand, until they are saved or discarded. */
import { useRef, useState } from 'react';
import type { ConfigFile } from '../sale-types.ts';
import { type FormMap, type FormValue, type Path, withMember, withName } from './forms/edit-yaml.ts';

interface Written {
  /** The file's text when the edit began. It is sent with a save, which fails if the file has changed since. */
  readonly base: string;
  readonly text: string;
  /** The last change by a form: another one of the same member starts from the text before it, so its place stays. */
  readonly last?: { readonly member: string; readonly before: string };
}

export interface Draft {
  readonly file: ConfigFile;
  readonly base: string;
  readonly text: string;
  readonly isChanged: boolean;
  /** Whether the file has changed since the edit began. */
  readonly isOvertaken: boolean;
  setText(text: string): void;
  /** Drops the edit. */
  takeTheirs(): void;
  /** false: the place is written in a way that only the text can change. */
  setMember(path: Path, value: FormValue): boolean;
  /** Several members in one go; false as above, and then none is changed. */
  setMembers(members: readonly { readonly path: Path; readonly value: NonNullable<FormValue> }[]): boolean;
  /** A new entry; false as above. */
  addEntry(path: Path, members: FormMap): boolean;
  /** Gives a member another name; false as above. */
  rename(path: Path, name: string): boolean;
}

export function useDrafts(files: readonly ConfigFile[]): readonly Draft[] {
  const [edits, setEdits] = useState<ReadonlyMap<string, Written>>(new Map());
  // Two fields may be written before the page is rendered in between: the second starts from the text of the first.
  const latest = useRef(edits);
  return files.map((file) => {
    const { base, text } = currentOf(file, edits.get(file.name));
    const now = () => currentOf(file, latest.current.get(file.name));
    const put = (written: Written) => {
      latest.current = new Map(latest.current).set(file.name, written);
      setEdits(latest.current);
    };
    const replaceText = (change: (before: string) => string | undefined) => {
      const current = now();
      const changed = change(current.text);
      if (changed !== undefined) put({ base: current.base, text: changed });
      return changed !== undefined;
    };
    return {
      file,
      base,
      text,
      isChanged: text !== base,
      isOvertaken: text !== base && file.text !== base,
      setText: (changed) => put({ base: now().base, text: changed }),
      takeTheirs: () => put({ base: file.text, text: file.text }),
      setMember(path, value) {
        const current = now();
        const member = JSON.stringify(path);
        const before = current.last?.member === member ? current.last.before : current.text;
        const changed = withMember(before, path, value);
        if (changed !== undefined) put({ base: current.base, text: changed, last: { member, before } });
        return changed !== undefined;
      },
      setMembers: (members) =>
        replaceText((before) =>
          members.reduce<string | undefined>(
            (text, { path, value }) => (text === undefined ? undefined : withMember(text, path, value)),
            before,
          ),
        ),
      addEntry: (path, members) => replaceText((before) => withMember(before, path, members)),
      rename: (path, name) => replaceText((before) => withName(before, path, name)),
    };
  });
}

/** A file that changes while nothing is being edited here is shown as it is. */
function currentOf(file: ConfigFile, written: Written | undefined): Written {
  if (written === undefined) return { base: file.text, text: file.text };
  const isOurs = written.text === written.base || written.text === file.text;
  return file.text !== written.base && isOurs ? { base: file.text, text: file.text } : written;
}
