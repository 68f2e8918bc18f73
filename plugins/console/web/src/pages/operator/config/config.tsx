/** The gateway's files as they run: forms for everyday settings, and the text; checked, compared, saved, reloaded. */
import { Badge, Button, Stack, Tabs, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { IconAlertTriangle, IconFileSettings, IconForms, IconHistory, IconRefresh } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useBlocker } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../../api/again.ts';
import { send } from '../../../api/client.ts';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { Act, useActs } from '../parts/act.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import type { ConfigAnswer, ConfigCheck } from '../sale-types.ts';
import { doneText } from './done-text.ts';
import { useDrafts } from './drafts.ts';
import { FileEditor } from './file-editor.tsx';
import { Forms } from './forms/forms.tsx';
import { History } from './history.tsx';
import { Notices } from './notices.tsx';

const configPath = '/admin/config';
const formsTab = 'forms';
const noticesTab = 'warnings';
const historyTab = 'history';

export default function Config() {
  const { t } = useTranslation();
  const acts = useActs();
  const answer = useAnswer<ConfigAnswer>(configPath);
  return (
    <Page title={t('operator.config.title')} hint={t('operator.config.intro')} actions={acts ? <Reload /> : undefined}>
      <Loaded of={answer} height={520}>
        {(data) => (data.files.length === 0 ? <Nothing /> : <Files answer={data} />)}
      </Loaded>
    </Page>
  );
}

function Files({ answer }: { readonly answer: ConfigAnswer }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const { files, schema, notices, loadedAt, generation } = answer;
  const drafts = useDrafts(files);
  const isChanged = drafts.some((draft) => draft.isChanged);
  useBlocker({
    // Edits are kept while another tab of this page is open.
    shouldBlockFn: ({ current, next }) =>
      isChanged && current.pathname !== next.pathname && !window.confirm(t('operator.config.leave')),
    enableBeforeUnload: () => isChanged,
  });
  const opened = files.find(({ name }) => name === search['file']) ?? files[0]!;
  const view = [noticesTab, historyTab].find((name) => name === search['view']);
  const isText = search['file'] !== undefined;
  const warnings = notices.filter(({ level }) => level === 'warning').length;
  return (
    <Stack gap="sm">
      <Text fz="xs" c="dimmed">
        {t('operator.config.loaded', { generation })} <Time at={loadedAt} relative />
      </Text>
      <Tabs
        value={view ?? (isText ? opened.name : formsTab)}
        onChange={(tab) => change(placeOfTab(tab))}
        keepMounted={false}
      >
        <Tabs.List>
          <Tabs.Tab value={formsTab} leftSection={<IconForms size={15} />}>
            {t('operator.config.forms.tab')}
          </Tabs.Tab>
          <Tabs.Tab
            value={noticesTab}
            leftSection={<IconAlertTriangle size={15} />}
            rightSection={warnings === 0 ? undefined : <Badge color="yellow">{warnings}</Badge>}
          >
            {t('operator.config.warnings')}
          </Tabs.Tab>
          <Tabs.Tab value={historyTab} leftSection={<IconHistory size={15} />}>
            {t('operator.config.history.tab')}
          </Tabs.Tab>
          {files.map(({ name, writable }) => (
            <Tabs.Tab key={name} value={name}>
              {name.split('/').at(-1)}
              {!writable && (
                <Text span fz="xs" c="dimmed">
                  {' '}
                  {t('operator.config.readOnly')}
                </Text>
              )}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value={formsTab} pt="sm">
          <Forms drafts={drafts} schema={schema} />
        </Tabs.Panel>
        <Tabs.Panel value={noticesTab} pt="sm">
          <Notices notices={notices} onGo={(file, at) => change({ file, at, view: undefined })} />
        </Tabs.Panel>
        <Tabs.Panel value={historyTab} pt="sm">
          <History />
        </Tabs.Panel>
        {drafts.map((draft) => (
          <Tabs.Panel key={draft.file.name} value={draft.file.name} pt="sm">
            <FileEditor draft={draft} schema={schema} at={search['at']} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  );
}

function placeOfTab(tab: string | null) {
  const others = { version: undefined, with: undefined };
  if (tab === noticesTab || tab === historyTab) return { ...others, view: tab, file: undefined, at: undefined };
  return { ...others, view: undefined, file: tab === null || tab === formsTab ? undefined : tab, at: undefined };
}

function Reload() {
  const { t } = useTranslation();
  const [opened, dialog] = useDisclosure(false);
  const client = useQueryClient();
  return (
    <>
      <Button variant="default" leftSection={<IconRefresh size={15} />} onClick={dialog.open}>
        {t('operator.config.reload')}
      </Button>
      <Act
        opened={opened}
        onClose={dialog.close}
        title={t('operator.config.reloadTitle')}
        text={t('operator.config.reloadText')}
        action={t('operator.config.reload')}
        withReason={false}
        act={async () => {
          const check = await send<ConfigCheck>('POST', `${configPath}/reload`, {});
          await askAgain(client, []);
          const [first] = check.problems;
          if (first === undefined) return doneText(check, t('operator.config.reloaded'), t);
          notifications.show({ message: `${first.where}: ${first.message}`, color: 'red', autoClose: false });
          return undefined;
        }}
      />
    </>
  );
}

function Nothing() {
  const { t } = useTranslation();
  return (
    <Panel>
      <EmptyState icon={IconFileSettings} title={t('operator.config.empty')} hint={t('operator.config.emptyHint')} />
    </Panel>
  );
}
