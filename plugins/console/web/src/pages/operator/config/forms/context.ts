/** What the fields of a form share: the files as they would be, and how a member is changed. */
import { createContext, useContext } from 'react';
import type { ConfigCheck } from '../../sale-types.ts';
import type { Draft } from '../drafts.ts';
import type { SchemaNode } from '../schema.ts';
import type { FormMap, FormValue, Path } from './edit-yaml.ts';
import { fileFor, filesWith, type Layer, valueAt, type Written } from './layers.ts';

export interface FormContext {
  readonly layers: readonly Layer[];
  readonly drafts: readonly Draft[];
  readonly problems: ConfigCheck['problems'];
  readonly schema: SchemaNode;
  readonly readOnly: boolean;
  /** The only entry that is shown; undefined: one is picked. */
  readonly entry: string | undefined;
}

const context = createContext<FormContext | undefined>(undefined);
export const FormProvider = context.Provider;
export const useForms = (): FormContext => useContext(context)!;

export interface Member {
  readonly written: Written | undefined;
  /** Problems that the gateway finds in this member. */
  readonly error: string | undefined;
  /** Whether a form can change it. */
  readonly isFixed: boolean;
  /** false: it could not be changed. */
  set(value: FormValue): boolean;
}

export function useMember(path: Path): Member {
  const { layers, drafts, problems, readOnly } = useForms();
  const file = fileFor(layers, path);
  const draft = drafts.find((one) => one.file.name === file?.name);
  const prefix = `${path.join('.')}: `;
  return {
    written: valueAt(layers, path),
    error: problems.find(({ message }) => message.startsWith(prefix))?.message.slice(prefix.length),
    isFixed: readOnly || draft === undefined,
    set: (value) => draft?.setMember(path, value) ?? false,
  };
}

export interface Entry {
  /** Whether a form can change it. */
  readonly isFixed: boolean;
  /** Adds a member; like all of these false where only the text can be changed. */
  add(name: string, value: NonNullable<FormValue>): boolean;
  /** Replaces a mapping. */
  replace(members: FormMap): boolean;
  /** Gives the entry another name in every file that has it. */
  rename(name: string): boolean;
  /** Takes the entry out of every file that has it. */
  remove(): boolean;
}

/** A mapping that a form fills, renames or removes. */
export function useEntry(path: Path): Entry {
  const { layers, drafts, readOnly } = useForms();
  const draftOf = (file: Layer | undefined) => drafts.find((one) => one.file.name === file?.name);
  const having = filesWith(layers, path);
  const isWhole = having.every(({ writable }) => writable);
  const each = (change: (draft: Draft) => boolean) =>
    isWhole && having.map((file) => draftOf(file)).every((draft) => draft !== undefined && change(draft));
  return {
    isFixed: readOnly || !isWhole || draftOf(fileFor(layers, path)) === undefined,
    add: (name, value) => draftOf(fileFor(layers, [...path, name]))?.setMember([...path, name], value) ?? false,
    replace: (members) => draftOf(fileFor(layers, path))?.addEntry(path, members) ?? false,
    rename: (name) => each((draft) => draft.rename(path, name)),
    remove: () => each((draft) => draft.setMember(path, undefined)),
  };
}
