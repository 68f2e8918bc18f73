/** Goes anywhere and does things by a few letters: pages, models, keys, accounts, requests by their id, actions. Loaded when it is opened. */
import { Group, Kbd, Modal, Stack, Text, TextInput, UnstyledButton } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { IconSearch } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../api/client.ts';
import { keysQuery, modelsQuery } from '../api/models.ts';
import { has, seesOperatorPages, useMe } from '../api/session.ts';
import type { Feature, Me } from '../api/types.ts';
import { clientPages } from '../pages/client/index.ts';
import { operatorPages } from '../pages/operator/index.ts';
import { pluginPages } from '../pages/plugin-page/pages.ts';
import { useActions } from './command-actions.ts';
import { askedOf, type FoundAccount, type Place, placesFor, type Sources } from './command-places.ts';
import { shown } from './sidebar.tsx';

interface CommandProps {
  /** `keys`: the list of keys instead of the search. */
  readonly mode: 'search' | 'keys';
  readonly onClose: () => void;
}

export default function Command({ mode, onClose }: CommandProps) {
  const { t } = useTranslation();
  return (
    <Modal
      opened
      onClose={onClose}
      title={mode === 'keys' ? t('shell.command.keys') : t('shell.command.title')}
      yOffset="12vh"
      centered={false}
      size="lg"
    >
      {mode === 'keys' ? <Keys /> : <Search onClose={onClose} />}
    </Modal>
  );
}

function Search({ onClose }: { readonly onClose: () => void }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [text, setText] = useState('');
  const [marked, setMarked] = useState(0);
  const sources = useSources(text);
  const places = placesFor(text, sources);
  const waits = (askedOf(text, sources.actions)?.rest.length ?? 9) < 2;
  const go = (place: Place | undefined) => {
    if (place === undefined) return;
    if (place.fill !== undefined) {
      setText(place.fill);
      setMarked(0);
      return;
    }
    onClose();
    place.run?.();
    if (place.to !== undefined) void navigate({ to: place.to, search: place.search ?? {} });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && places.length > 0) setMarked((marked + step + places.length) % places.length);
    else if (event.key === 'Enter') go(places[marked]);
    else return;
    event.preventDefault();
  };
  return (
    <Stack gap="xs">
      <TextInput
        data-autofocus
        role="combobox"
        aria-expanded
        aria-controls="command-places"
        aria-activedescendant={places.length === 0 ? undefined : `command-${marked}`}
        aria-label={t('shell.command.title')}
        placeholder={t('shell.command.hint')}
        leftSection={<IconSearch size={15} />}
        value={text}
        onChange={({ currentTarget }) => {
          setText(currentTarget.value);
          setMarked(0);
        }}
        onKeyDown={onKeyDown}
      />
      <Places places={places} marked={marked} onMark={setMarked} onGo={go} />
      {places.length === 0 && (
        <Text fz="sm" c="dimmed" role="status">
          {waits ? t('shell.command.writeMore') : t('shell.command.none')}
        </Text>
      )}
    </Stack>
  );
}

interface PlacesProps {
  readonly places: readonly Place[];
  readonly marked: number;
  readonly onMark: (index: number) => void;
  readonly onGo: (place: Place) => void;
}

function Places({ places, marked, onMark, onGo }: PlacesProps) {
  const { t } = useTranslation();
  return (
    <div id="command-places" role="listbox" aria-label={t('shell.command.title')} className="command-places">
      {places.map((place, index) => (
        <UnstyledButton
          key={`${place.kind} ${place.name} ${place.to ?? ''}`}
          id={`command-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === marked}
          className="command-place"
          onPointerMove={() => onMark(index)}
          onClick={() => onGo(place)}
        >
          <Text span fz="sm" truncate>
            {place.name}
          </Text>
          <Text span fz="xs" c="dimmed" className="nowrap">
            {t(`shell.command.kind.${place.kind}`)}
          </Text>
        </UnstyledButton>
      ))}
    </div>
  );
}

/** Destinations that this person may open. */
function useSources(text: string): Sources {
  const me = useMe();
  const asOperator = seesOperatorPages(me);
  const mine = me.account === null ? [] : [...shown(clientPages, me), ...pluginPages(me, 'own')];
  const forOperators = asOperator ? [...shown(operatorPages, me), ...pluginPages(me, 'operators')] : [];
  const pages = [...forOperators, ...mine];
  const actions = useActions();
  const [wanted] = useDebouncedValue(askedOf(text, actions)?.rest ?? text.trim(), 200);
  const models = useQuery(modelsQuery).data?.rows ?? [];
  const keys = useQuery({ ...keysQuery, enabled: me.account !== null && has(me, 'accounts') }).data?.rows ?? [];
  const accounts = useQuery({
    queryKey: ['command', 'accounts', wanted],
    queryFn: ({ signal }) =>
      get<{ rows: readonly FoundAccount[] }>('/admin/accounts', { text: wanted, limit: 6 }, signal),
    enabled: asOperator && has(me, 'accounts') && wanted.length >= 2,
    placeholderData: keepPreviousData,
  }).data?.rows;
  return {
    pages: pages.map(({ path, link }) => ({ name: link!.text(), path })),
    models: models.map(({ id }) => id),
    keys: keys.map(({ id, name, prefix }) => ({ id, name, prefix })),
    accounts: wanted.length >= 2 ? (accounts ?? []) : [],
    requests: reachOf(me, 'requests'),
    batches: reachOf(me, 'batches'),
    tasks: me.account !== null && has(me, 'tasks'),
    actions,
  };
}

function reachOf(me: Me, feature: Feature) {
  if (!has(me, feature)) return 'none';
  return seesOperatorPages(me) ? 'operator' : 'own';
}

const keyList = [
  ['search', ['⌘', 'K']],
  ['list', ['?']],
  ['down', ['j']],
  ['up', ['k']],
  ['open', ['Enter']],
  ['send', ['Ctrl', 'Enter']],
] as const;

function Keys() {
  const { t } = useTranslation();
  return (
    <Stack gap="xs">
      {keyList.map(([name, keys]) => (
        <Group key={name} justify="space-between">
          <Text fz="sm">{t(`shell.command.key.${name}`)}</Text>
          <Group gap={4}>
            {keys.map((key) => (
              <Kbd key={key}>{key}</Kbd>
            ))}
          </Group>
        </Group>
      ))}
    </Stack>
  );
}
