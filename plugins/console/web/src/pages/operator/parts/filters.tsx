/** Filters of a list, each kept in the address bar under its own name. */
import { Group, Select, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { type ReactNode, useEffect, useState } from 'react';
import { SavedViews } from '../../../parts/saved-views.tsx';
import { useSearchState } from '../../../parts/search-state.ts';

export function FilterBar({ children }: { readonly children: ReactNode }) {
  return (
    <Group gap="xs" px="md" pt="sm" pb="xs" role="search">
      {children}
      <SavedViews />
    </Group>
  );
}

interface FilterProps {
  /** Member of the address bar, and of the question. */
  readonly name: string;
  readonly label: string;
}

/** Applied a moment after the last letter. */
export function TextFilter({ name, label }: FilterProps) {
  const [search, change] = useSearchState();
  const requested = search[name] ?? '';
  const [text, setText] = useState(requested);
  useEffect(() => setText(requested), [requested]);
  const apply = useDebouncedCallback((value: string) => change({ [name]: value.trim() || undefined }), 350);
  return (
    <TextInput
      size="xs"
      flex="1 1 140px"
      maw={260}
      aria-label={label}
      placeholder={label}
      leftSection={<IconSearch size={14} aria-hidden />}
      value={text}
      onChange={({ currentTarget }) => {
        setText(currentTarget.value);
        apply(currentTarget.value);
      }}
    />
  );
}

interface ChoiceProps extends FilterProps {
  readonly data: readonly { readonly value: string; readonly label: string }[];
}

export function ChoiceFilter({ name, label, data }: ChoiceProps) {
  const [search, change] = useSearchState();
  return (
    <Select
      size="xs"
      w={170}
      aria-label={label}
      placeholder={label}
      clearable
      data={[...data]}
      value={search[name] ?? null}
      onChange={(value) => change({ [name]: value ?? undefined })}
    />
  );
}
