/** The form of one entry in a drawer where the entry is shown: checked, compared and applied as on the page of the configuration. */
import { useBlocker } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Loaded, useAnswer } from '../../parts/load.tsx';
import { SideDrawer } from '../../parts/resource-page.tsx';
import type { ConfigAnswer } from '../../sale-types.ts';
import { useDrafts } from '../drafts.ts';
import { type FormName, Forms } from './forms.tsx';

interface EditEntryProps {
  readonly form: FormName;
  /** undefined: closed. */
  readonly entry: string | undefined;
  readonly onClose: () => void;
}

export default function EditEntry({ form, entry, onClose }: EditEntryProps) {
  const { t } = useTranslation();
  const [isChanged, setChanged] = useState(false);
  const close = () => {
    if (isChanged && !window.confirm(t('operator.config.leave'))) return;
    setChanged(false);
    onClose();
  };
  return (
    <SideDrawer
      title={entry === undefined ? undefined : t('operator.config.forms.editTitle', { name: entry })}
      size="xl"
      onClose={close}
      content={
        entry === undefined ? undefined : <Content key={entry} form={form} entry={entry} onChange={setChanged} />
      }
    />
  );
}

interface ContentProps {
  readonly form: FormName;
  readonly entry: string;
  readonly onChange: (isChanged: boolean) => void;
}

function Content({ form, entry, onChange }: ContentProps) {
  const answer = useAnswer<ConfigAnswer>('/admin/config');
  return (
    <Loaded of={answer} height={420}>
      {({ files, schema }) => <Drafts files={files} schema={schema} only={{ form, entry }} onChange={onChange} />}
    </Loaded>
  );
}

interface DraftsProps extends Pick<ConfigAnswer, 'files' | 'schema'> {
  readonly only: { readonly form: FormName; readonly entry: string };
  readonly onChange: (isChanged: boolean) => void;
}

function Drafts({ files, schema, only, onChange }: DraftsProps) {
  const { t } = useTranslation();
  const drafts = useDrafts(files);
  const isChanged = drafts.some((draft) => draft.isChanged);
  useEffect(() => onChange(isChanged), [isChanged, onChange]);
  useBlocker({
    shouldBlockFn: ({ current, next }) =>
      isChanged && current.pathname !== next.pathname && !window.confirm(t('operator.config.leave')),
    enableBeforeUnload: () => isChanged,
  });
  return <Forms drafts={drafts} schema={schema} only={only} />;
}
