/** Filters of this page under a name, kept for the person on the server: chosen, saved and deleted. */
import { ActionIcon, Button, Group, Popover, Stack, Text, TextInput, UnstyledButton } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconBookmark, IconX } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useLocation, useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get, send } from '../api/client.ts';
import { useMe } from '../api/session.ts';
import type { SavedView } from '../api/types.ts';
import './insight-texts.ts';
import { readSearch, type SearchState, useSearchState, writeSearch } from './search-state.ts';

/** What is opened, or where one is in a list, is no part of a view. */
const passing = ['after', 'page', 'open', 'act', 'new'];

function queryOf(search: SearchState): string {
  const lasting = Object.entries(search).filter(([name]) => !passing.includes(name));
  return writeSearch(Object.fromEntries(lasting)).slice(1);
}

export function SavedViews() {
  const { t } = useTranslation();
  const [opened, panel] = useDisclosure(false);
  const page = useLocation({ select: ({ pathname }) => pathname.replace(/^\/console(?=\/)/, '') });
  // Views are of people: a script has none.
  if (useMe().person === null) return null;
  return (
    <Popover opened={opened} onChange={panel.toggle} position="bottom-start" shadow="md" trapFocus width={280}>
      <Popover.Target>
        <Button size="xs" variant="default" leftSection={<IconBookmark size={14} aria-hidden />} onClick={panel.toggle}>
          {t('client.views.label')}
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <ViewList page={page} onDone={panel.close} />
      </Popover.Dropdown>
    </Popover>
  );
}

interface ListProps {
  readonly page: string;
  readonly onDone: () => void;
}

function ViewList({ page, onDone }: ListProps) {
  const { t } = useTranslation();
  const [search] = useSearchState();
  const [name, setName] = useState('');
  const [failed, setFailed] = useState(false);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const queryKey = ['views', page];
  const { data } = useQuery({
    queryKey,
    queryFn: ({ signal }) => get<{ readonly rows: readonly SavedView[] }>('/views', { page }, signal),
  });
  const rows = data?.rows ?? [];
  const change = async (path: string, body: object) => {
    try {
      await send('POST', path, { page, ...body });
      setFailed(false);
      await queries.invalidateQueries({ queryKey });
      return true;
    } catch {
      setFailed(true);
      return false;
    }
  };
  const save = async (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() !== '' && (await change('/views', { name: name.trim(), query: queryOf(search) }))) setName('');
  };
  const open = (query: string) => {
    void navigate({ to: '.', search: readSearch(query) as never });
    onDone();
  };
  return (
    <Stack gap="xs">
      {rows.length === 0 && (
        <Text fz="xs" c="dimmed">
          {t('client.views.none')}
        </Text>
      )}
      {rows.map((view) => (
        <Group key={view.name} gap={4} wrap="nowrap" justify="space-between">
          <UnstyledButton fz="sm" flex={1} py={4} onClick={() => open(view.query)}>
            {view.name}
          </UnstyledButton>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={t('client.views.remove', { name: view.name })}
            onClick={() => void change('/views/delete', { name: view.name })}
          >
            <IconX size={14} />
          </ActionIcon>
        </Group>
      ))}
      <form onSubmit={(event) => void save(event)}>
        <Group gap={6} wrap="nowrap" align="flex-start">
          <TextInput
            size="xs"
            flex={1}
            maxLength={60}
            aria-label={t('client.views.name')}
            placeholder={t('client.views.name')}
            value={name}
            error={failed ? t('client.views.failed') : undefined}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <Button type="submit" size="xs" disabled={name.trim() === ''}>
            {t('client.views.save')}
          </Button>
        </Group>
      </form>
    </Stack>
  );
}
