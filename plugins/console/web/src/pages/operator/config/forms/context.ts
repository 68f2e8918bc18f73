/** What the fields of a form share: the files as they would be, and how a member is changed. */
import { createContext, useContext } from 'react';
import type { ConfigCheck } from '../../sale-types.ts';
import type { Draft } from '../drafts.ts';
import type { SchemaNode } from '../schema.ts';
import type { FormValue, Path } from './edit-yaml.ts';
import { fileFor, type Layer, valueAt, type Written } from './layers.ts';

export interface FormContext {
  readonly layers: readonly Layer[];
  readonly drafts: readonly Draft[];
  readonly problems: ConfigCheck['problems'];
  readonly schema: SchemaNode;
  readonly readOnly: boolean;
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
