/** Chooses the entry that a form shows, and begins a new one. Both live in the address bar. */
import { Box, Button, Group, NavLink, Select, Stack, Text, TextInput, Title } from '@mantine/core';
import { IconPlus, IconSearch } from '@tabler/icons-react';
import { type FormEvent, type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { BesideField } from '../../../../parts/beside-field.tsx';
import { useSearchState } from '../../../../parts/search-state.ts';
import { useForms } from './context.ts';

interface PickerProps {
  readonly label: string;
  readonly names: readonly string[];
  /** Text of the button that begins a new entry; absent: there are no new ones here. */
  readonly add?: string;
  /** Writes the first members of a new entry. */
  readonly onAdd?: (name: string) => void;
  /** A form of its own for a new entry; `onDone` takes the entry's name, or undefined where there is none. */
  readonly form?: (onDone: (name: string | undefined) => void) => ReactNode;
  /** Beside the name of a new entry. */
  readonly more?: ReactNode;
  readonly children: (name: string) => ReactNode;
}

export function Picker({ label, names, add, onAdd, form, more, children }: PickerProps) {
  const [search, change] = useSearchState();
  const { t } = useTranslation();
  const { readOnly, entry } = useForms();
  const adding = search['add'] !== undefined && add !== undefined && !readOnly;
  const chosen = names.includes(search['entry'] ?? '') ? search['entry']! : names[0];
  if (entry !== undefined)
    return names.includes(entry) ? children(entry) : <Text fz="sm">{t('operator.config.forms.noEntry')}</Text>;
  const choose = (name: string | null) => change({ entry: name ?? undefined, add: undefined });
  return (
    <div className="picker">
      <Stack gap="xs">
        {add !== undefined && !readOnly && (
          <Button
            variant="light"
            leftSection={<IconPlus size={15} />}
            aria-pressed={adding}
            onClick={() => change({ add: adding ? undefined : '1' })}
          >
            {add}
          </Button>
        )}
        <Select
          hiddenFrom="sm"
          aria-label={label}
          data={[...names]}
          value={chosen ?? null}
          searchable
          allowDeselect={false}
          onChange={choose}
        />
        <Entries label={label} names={names} chosen={adding ? undefined : chosen} onChoose={choose} />
      </Stack>
      <Stack gap="sm" miw={0}>
        {adding && form?.((name) => change({ add: undefined, ...(name === undefined ? {} : { entry: name }) }))}
        {adding && onAdd !== undefined && (
          <NewEntry
            names={names}
            more={more}
            onAdd={(name) => {
              onAdd(name);
              change({ add: undefined, entry: name });
            }}
          />
        )}
        {chosen !== undefined && !adding && (
          <div key={chosen}>
            <Title order={2} fz="lg" mb="sm">
              {chosen}
            </Title>
            {children(chosen)}
          </div>
        )}
      </Stack>
    </div>
  );
}

interface EntriesProps {
  readonly label: string;
  readonly names: readonly string[];
  readonly chosen: string | undefined;
  readonly onChoose: (name: string) => void;
}
/** From here on the list is looked through by words. */
const searchedFrom = 10;

/** The list beside the form; small screens have a field instead. */
function Entries({ label, names, chosen, onChoose }: EntriesProps) {
  const { t } = useTranslation();
  const [text, setText] = useState('');
  const shown = names.filter((name) => name.toLowerCase().includes(text.trim().toLowerCase()));
  return (
    <Box visibleFrom="sm" component="nav" aria-label={label}>
      {names.length >= searchedFrom && (
        <TextInput
          size="xs"
          mb="xs"
          aria-label={`${t('shell.command.title')}: ${label}`}
          placeholder={t('shell.command.title')}
          leftSection={<IconSearch size={14} />}
          value={text}
          onChange={({ currentTarget }) => setText(currentTarget.value)}
        />
      )}
      <div className="picker-list">
        {shown.map((name) => (
          <NavLink
            key={name}
            component="button"
            className="sidebar-link"
            label={name}
            active={name === chosen}
            aria-current={name === chosen || undefined}
            onClick={() => onChoose(name)}
          />
        ))}
      </div>
    </Box>
  );
}

interface NewEntryProps {
  readonly names: readonly string[];
  readonly more: ReactNode;
  readonly onAdd: (name: string) => void;
}

function NewEntry({ names, more, onAdd }: NewEntryProps) {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const [tried, setTried] = useState(false);
  const wanted = name.trim();
  const fault = !/^[^\s?#/.]+$/u.test(wanted.replaceAll('.', ''))
    ? t('operator.config.forms.nameMissing')
    : names.includes(wanted)
      ? t('operator.config.forms.nameTaken')
      : undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (fault === undefined) onAdd(wanted);
  };
  return (
    <form onSubmit={submit} noValidate>
      <Group align="flex-start" gap="xs">
        {more}
        <TextInput
          label={t('shell.word.name')}
          value={name}
          error={tried ? fault : undefined}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <BesideField>
          <Button type="submit">{t('shell.create')}</Button>
        </BesideField>
      </Group>
    </form>
  );
}
