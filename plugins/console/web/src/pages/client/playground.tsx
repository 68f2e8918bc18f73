/** Asks a model from the browser, by the address and a key that programs use, and shows what it took. */
import { Alert, Box, Button, Grid, Group, Select, Stack, Text, Textarea } from '@mantine/core';
import { IconPlayerStopFilled, IconSend } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { modelsQuery } from '../../api/models.ts';
import { useMe } from '../../api/session.ts';
import { CodeBlock } from '../../parts/code-block.tsx';
import { Page, Panel } from '../../parts/page.tsx';
import { useSearchState } from '../../parts/search-state.ts';
import { keyPlaceholder } from '../../snippets/index.ts';
import { Conversation } from './conversation.tsx';
import { Measures } from './measures.tsx';
import { SessionKey, useSessionKey } from './session-key.tsx';
import { curlOf } from './talk.ts';
import { useTalk } from './use-talk.ts';

export default function Playground() {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const [instructions, setInstructions] = useState('');
  const [key, setKey] = useSessionKey();
  const chats = (useQuery(modelsQuery).data?.rows ?? []).filter(({ kind, allowed }) => kind === 'chat' && allowed);
  const model = search['model'] ?? chats[0]?.id ?? '';
  const talk = useTalk(key, model, instructions);
  const base = useMe().gateway.origin;
  return (
    <Page title={t('client.playground.title')} hint={t('client.playground.hint')}>
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 8 }}>
          <Panel flush>
            <Conversation messages={talk.messages} turn={talk.turn} busy={talk.busy} />
            {talk.problem !== undefined && (
              <Box px="md" pb="sm">
                <Alert color="red" variant="light" role="alert">
                  {talk.problem}
                </Alert>
              </Box>
            )}
            <Ask talk={talk} ready={key !== '' && model !== ''} />
          </Panel>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 4 }}>
          <Stack gap="md">
            <Panel>
              <Stack gap="sm">
                <Select
                  label={t('client.playground.model')}
                  data={chats.map(({ id }) => id)}
                  value={model}
                  searchable
                  allowDeselect={false}
                  onChange={(value) => change({ model: value ?? undefined })}
                />
                <SessionKey value={key} onChange={setKey} />
                <Textarea
                  label={t('client.playground.system')}
                  autosize
                  minRows={2}
                  maxRows={8}
                  value={instructions}
                  onChange={({ currentTarget }) => setInstructions(currentTarget.value)}
                />
              </Stack>
            </Panel>
            {talk.turn !== undefined && <Measures turn={talk.turn} busy={talk.busy} />}
            {talk.messages.length > 0 && (
              <Panel title={t('client.playground.curl')}>
                <CodeBlock label={t('client.playground.curl')} text={curlOf(base, keyPlaceholder, model, talk.sent)} />
              </Panel>
            )}
          </Stack>
        </Grid.Col>
      </Grid>
    </Page>
  );
}

/** Where the next question is written. */
function Ask({ talk, ready }: { readonly talk: ReturnType<typeof useTalk>; readonly ready: boolean }) {
  const { t } = useTranslation();
  const [draft, setDraft] = useState('');
  const sendable = ready && draft.trim() !== '' && !talk.busy;
  const send = () => {
    if (!sendable) return;
    setDraft('');
    void talk.ask(draft.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send();
  };
  return (
    <Box className="ask">
      <Textarea
        aria-label={t('client.playground.message')}
        placeholder={t('client.playground.placeholder')}
        autosize
        minRows={2}
        maxRows={10}
        value={draft}
        onChange={({ currentTarget }) => setDraft(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <Group justify="space-between" mt="xs">
        {talk.messages.length === 0 ? (
          <Text fz="xs" c="dimmed">
            {ready ? '' : t('client.playground.keyMissing')}
          </Text>
        ) : (
          <Button variant="subtle" color="gray" size="xs" onClick={talk.reset}>
            {t('client.playground.again')}
          </Button>
        )}
        {talk.busy ? (
          <Button variant="default" leftSection={<IconPlayerStopFilled size={14} />} onClick={talk.stop}>
            {t('client.playground.stop')}
          </Button>
        ) : (
          <Button leftSection={<IconSend size={15} />} onClick={send} disabled={!sendable}>
            {t('client.playground.send')}
          </Button>
        )}
      </Group>
    </Box>
  );
}
