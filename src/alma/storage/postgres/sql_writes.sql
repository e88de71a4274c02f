-- What keeps the store whole where SQL writes to it: completing a row, and history, words, vectors, audit and marks.
-- The store's own connections set alma.writer, and none of these triggers fires for them.

CREATE OR REPLACE FUNCTION alma_terms(said text) RETURNS tsvector LANGUAGE sql IMMUTABLE AS $$
    -- Close to what ALMA's tokenizer finds, until it indexes the record anew.
    SELECT to_tsvector('english'::regconfig, plain) || to_tsvector('simple'::regconfig, plain)
    FROM (SELECT regexp_replace(left(said, 200000), '[-@._/:]+', ' ', 'g') AS plain) AS words
$$;

CREATE OR REPLACE FUNCTION alma_moment(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

CREATE OR REPLACE FUNCTION alma_document(said jsonb, tags text[], apart text[]) RETURNS jsonb LANGUAGE sql STABLE AS $$
    -- A row as history keeps records: without what is missing or empty, and with times in UTC.
    SELECT coalesce(jsonb_object_agg(key, CASE
        WHEN key LIKE '%\_at' OR key IN ('timestamp', 'event_time', 'valid_from', 'valid_until', 'last_validated',
            'last_verified', 'last_seen')
        THEN to_jsonb(alma_moment((value #>> '{}')::timestamptz)) ELSE value END), '{}')
        || CASE WHEN tags <> '{}' THEN jsonb_build_object('tags', tags) ELSE '{}' END
    FROM jsonb_each(said - apart)
    WHERE value <> 'null' AND (value NOT IN ('{}', '[]') OR key = 'content_json')
$$;

CREATE OR REPLACE FUNCTION alma_tags(record_id text) RETURNS text[] LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT coalesce(array_agg(tag ORDER BY tag), '{}') FROM memory_tags WHERE memory_id = record_id
$$;

CREATE OR REPLACE FUNCTION alma_append_event(action text, kind text, record_id text, at timestamptz) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    reason constant jsonb := '{"reason": "written by SQL"}';
    said_by text := 'SQL, role ' || session_user || coalesce(
        ', ' || nullif(left(current_setting('application_name'), 200), ''), '');
    address text := host(inet_client_addr());
    head alma_audit_chains;
    said text;
BEGIN
    SELECT * INTO head FROM alma_audit_chains ORDER BY chain LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO alma_audit_chains (length) VALUES (0) RETURNING * INTO head;
    END IF;
    -- The statement of the event as alma.storage.audit writes it.
    said := '[null,null,null,' || array_to_string(ARRAY[
        to_json(action)::text, to_json(kind)::text, to_json(record_id)::text, 'null',
        to_json(encode(sha256(convert_to('{"reason":"written by SQL"}', 'UTF8')), 'hex'))::text, 'true', 'null',
        coalesce(to_json(address)::text, 'null'), to_json(said_by)::text, to_json(alma_moment(at))::text], ',') || ']';
    head.length := head.length + 1;
    head.hash := encode(sha256(convert_to(
        concat_ws(chr(10), head.hash, head.chain, head.length, said), 'UTF8')), 'hex');
    UPDATE alma_audit_chains SET length = head.length, hash = head.hash WHERE chain = head.chain;
    INSERT INTO audit_log (action, resource_type, resource_id, details_json, success, ip_address, user_agent, created_at,
        chain, chain_position, chain_hash)
    VALUES (action, kind, record_id, reason, true, address, said_by, at, head.chain, head.length, head.hash);
END $$;

CREATE OR REPLACE FUNCTION alma_mark(marked text, record_id text, at timestamptz) RETURNS void
LANGUAGE sql SET search_path FROM CURRENT AS $$
    INSERT INTO alma_outbox (projection, kind, record_id, marked_at, generation)
    SELECT projection, kind, record_id, at, 1 FROM alma_projections WHERE kind = marked ORDER BY 1
    ON CONFLICT (projection, kind, record_id) DO UPDATE
    SET generation = alma_outbox.generation + 1, marked_at = excluded.marked_at, attempts = 0, error = NULL,
        parked = false
$$;

CREATE OR REPLACE FUNCTION alma_add_version(of_kind text, record_id text, old jsonb, new jsonb, at timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
-- One version for each record and transaction: what was in between was never there for anybody else.
DECLARE
    apart text[] := ARRAY['id', 'search', 'search_length', 'relationship_id'];
    texts text[] := CASE of_kind WHEN 'memory' THEN ARRAY['title', 'content', 'summary'] ELSE '{}' END;
    last memory_versions;
    is_own boolean;
    before jsonb;
    change text;
BEGIN
    SELECT * INTO last FROM memory_versions
    WHERE kind = of_kind AND memory_id = record_id ORDER BY version_number DESC LIMIT 1;
    SELECT mod(pg_current_xact_id()::text::numeric, 4294967296) = xmin::text::numeric INTO is_own
    FROM memory_versions WHERE id = last.id;
    IF old IS NOT NULL AND new IS NOT NULL THEN
        SELECT jsonb_object_agg(o.key, coalesce(alma_document(old, '{}', apart) -> o.key, 'null')) INTO before
        FROM jsonb_each(old - apart) AS o JOIN jsonb_each(new - apart) AS n USING (key) WHERE o.value <> n.value;
        change := CASE WHEN old -> 'is_archived' IS NOT DISTINCT FROM new -> 'is_archived' THEN 'updated'
            WHEN (new ->> 'is_archived')::boolean THEN 'archived' ELSE 'restored' END;
        IF is_own AND last.change_type <> 'deleted' THEN
            UPDATE memory_versions SET diff_json = before || diff_json WHERE id = last.id AND diff_json IS NOT NULL;
            RETURN;
        END IF;
    END IF;
    IF old IS NOT NULL AND last.id IS NOT NULL THEN
        UPDATE memory_versions
        SET record_json = alma_document(old, CASE of_kind WHEN 'memory' THEN alma_tags(record_id) ELSE '{}' END,
                apart || texts),
            title = CASE of_kind WHEN 'memory' THEN old ->> 'title' END,
            content = CASE of_kind WHEN 'memory' THEN old ->> 'content' END,
            summary = CASE of_kind WHEN 'memory' THEN old ->> 'summary' END
        WHERE id = last.id;
    END IF;
    INSERT INTO memory_versions (kind, memory_id, version_number, change_type, change_reason, diff_json, created_at,
        created_by)
    VALUES (of_kind, record_id, coalesce(last.version_number, 0) + 1,
        CASE WHEN new IS NULL THEN 'deleted' WHEN old IS NOT NULL THEN change
            WHEN last.id IS NULL THEN 'created' ELSE 'restored' END,
        'written by SQL', before, at, session_user);
END $$;

CREATE OR REPLACE FUNCTION alma_index_words(of_kind text, home text, key text, record_id text, said text)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT SET alma.writer = 'on' AS $$
-- Without firing what keeps the rows.
DECLARE
    terms tsvector := alma_terms(said);
BEGIN
    IF EXISTS (SELECT FROM memory_tags WHERE memory_id = record_id) THEN
        -- By itself this sign stands for any tag.
        terms := terms || '·'::tsvector;
    END IF;
    EXECUTE format('UPDATE %I SET search = $1, search_length = $2 WHERE %I = $3', home, key)
    USING terms, (SELECT count(*)::integer FROM regexp_matches(said, '\w+', 'g')), record_id;
    INSERT INTO alma_words_due (kind, record_id) VALUES (of_kind, record_id) ON CONFLICT DO NOTHING;
END $$;

CREATE OR REPLACE FUNCTION alma_keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
-- After a row was written: everything that agrees with it.
DECLARE
    spec constant jsonb := TG_ARGV[0];
    old_row constant jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) END;
    new_row constant jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) END;
    record_id constant text := coalesce(new_row, old_row) ->> (spec ->> 'key');
    at constant timestamptz := clock_timestamp();
    dependent jsonb;
    said_before text;
    said text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM alma_check(spec, new_row, NULL);
    END IF;
    IF (spec ->> 'versioned')::boolean THEN
        PERFORM alma_add_version(spec ->> 'kind', record_id, old_row, new_row, at);
    END IF;
    IF spec ? 'text' THEN
        SELECT string_agg(old_row ->> name, E'\n'), string_agg(new_row ->> name, E'\n') INTO said_before, said
        FROM jsonb_array_elements_text(spec -> 'text') AS name;
        IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND said IS DISTINCT FROM said_before THEN
            DELETE FROM alma_embeddings WHERE memory_type = spec ->> 'kind' AND memory_id = record_id;
        END IF;
        IF TG_OP <> 'DELETE' AND said IS DISTINCT FROM said_before THEN
            PERFORM alma_index_words(spec ->> 'kind', spec ->> 'table', spec ->> 'key', record_id, said);
        END IF;
    END IF;
    IF TG_OP = 'DELETE' THEN
        FOR dependent IN SELECT value FROM jsonb_array_elements(spec -> 'dependents') LOOP
            PERFORM alma_release(dependent ->> 0, dependent ->> 1, (dependent ->> 2)::boolean, record_id);
        END LOOP;
    END IF;
    PERFORM alma_append_event(
        CASE TG_OP WHEN 'INSERT' THEN 'create' WHEN 'UPDATE' THEN 'update' ELSE 'delete' END,
        spec ->> 'kind', record_id, at);
    PERFORM alma_mark(spec ->> 'kind', record_id, at);
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION alma_release(home text, field text, goes boolean, record_id text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
-- Rows that refer to one that is gone go with it, or lose the reference; their own triggers keep what belongs to them.
DECLARE
    dependent text;
BEGIN
    IF goes THEN
        EXECUTE format('DELETE FROM %I WHERE %I = $1', home, field) USING record_id;
        RETURN;
    END IF;
    FOR dependent IN EXECUTE format('SELECT id FROM %I WHERE %I = $1 ORDER BY id', home, field) USING record_id LOOP
        BEGIN
            EXECUTE format('UPDATE %I SET %I = NULL WHERE id = $1', home, field) USING dependent;
        EXCEPTION WHEN unique_violation THEN
            -- What it would become is there already.
            EXECUTE format('DELETE FROM %I WHERE id = $1', home) USING dependent;
        END;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION alma_check(spec jsonb, said jsonb, old_row jsonb) RETURNS void LANGUAGE plpgsql
SET search_path FROM CURRENT AS $$
-- What no record may say.
DECLARE
    field text;
BEGIN
    FOR field IN SELECT jsonb_array_elements_text(spec -> 'limited') LOOP
        IF btrim(said ->> field, E' \t\n\r') = '' OR length(said ->> field) > 200 THEN
            RAISE EXCEPTION '% must have 1 to 200 characters', coalesce(spec -> 'names' ->> field, field)
                USING ERRCODE = 'check_violation';
        END IF;
    END LOOP;
    FOR field IN SELECT jsonb_array_elements_text(spec -> 'objects') LOOP
        IF jsonb_typeof(said -> field) NOT IN ('object', 'null') THEN
            RAISE EXCEPTION '% must be a JSON object', coalesce(spec -> 'names' ->> field, field)
                USING ERRCODE = 'check_violation';
        END IF;
    END LOOP;
    FOR field IN SELECT jsonb_object_keys(spec -> 'references') LOOP
        IF said ->> field IS DISTINCT FROM old_row ->> field THEN
            PERFORM alma_require(spec -> 'references' ->> field, said ->> field,
                coalesce(spec -> 'names' ->> field, field));
        END IF;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION alma_complete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
-- Before a row is written: what it does not say.
DECLARE
    spec constant jsonb := TG_ARGV[0];
    key constant text := spec ->> 'key';
    moment constant timestamptz := clock_timestamp();
    said constant jsonb := to_jsonb(NEW);
    created constant text := coalesce(said ->> 'created_at', moment::text);
    old_row jsonb;
    more jsonb;
BEGIN
    SELECT spec -> 'defaults' || coalesce(jsonb_object_agg(name, created), '{}') INTO more
    FROM jsonb_array_elements_text(spec -> 'moments') AS name;
    more := more || jsonb_build_object(
        'id', replace(gen_random_uuid()::text, '-', ''), 'username', said -> 'id');
    more := more - ARRAY(SELECT each.key FROM jsonb_each(said) AS each WHERE value <> 'null');
    IF TG_OP = 'INSERT' AND said ->> 'ended_at' IS NOT NULL THEN
        more := more || '{"is_active": false}';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        old_row := to_jsonb(OLD);
        IF said -> key <> old_row -> key THEN
            RAISE EXCEPTION '% cannot be changed: delete the row and insert another one',
                coalesce(spec -> 'names' ->> key, key) USING ERRCODE = 'check_violation';
        END IF;
        IF said -> 'created_at' <> old_row -> 'created_at'
            AND EXISTS (SELECT FROM pg_class WHERE oid = TG_RELID AND relispartition) THEN
            RAISE EXCEPTION 'created_at cannot be changed in a partitioned table' USING ERRCODE = 'check_violation';
        END IF;
        IF said -> 'updated_at' = old_row -> 'updated_at' THEN
            more := more || jsonb_build_object(
                'updated_at', greatest(moment, (old_row ->> 'updated_at')::timestamptz + interval '1 microsecond'));
        END IF;
        -- A session is active until it has ended.
        IF said -> 'ended_at' <> old_row -> 'ended_at' AND said -> 'is_active' = old_row -> 'is_active' THEN
            more := more || jsonb_build_object('is_active', said -> 'ended_at' = 'null');
        END IF;
        PERFORM alma_check(spec, said, old_row);
    END IF;
    RETURN jsonb_populate_record(NEW, more);
END $$;

CREATE OR REPLACE FUNCTION alma_require(home text, record_id text, field text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
-- Locks what is referred to, so that it is not deleted meanwhile.
DECLARE
    found boolean;
BEGIN
    IF record_id IS NULL THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT true FROM %I WHERE id = $1 FOR SHARE', home) INTO found USING record_id;
    IF found IS NULL THEN
        RAISE EXCEPTION '% %: there is no % with this id', field, quote_literal(record_id),
            CASE home WHEN 'memories' THEN 'memory entry' ELSE 'session' END
            USING ERRCODE = 'foreign_key_violation';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION alma_keep_tag() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
-- Before a tag is written: the memory that has it changes, and its last version keeps the tags that it had until now.
DECLARE
    gone constant text := CASE WHEN TG_OP <> 'INSERT' THEN OLD.memory_id END;
    come constant text := CASE WHEN TG_OP <> 'DELETE' THEN NEW.memory_id END;
    changed text;
BEGIN
    IF TG_OP <> 'DELETE' THEN
        PERFORM alma_require('memories', come, 'memory_id');
        IF btrim(NEW.tag, E' \t\n\r') = '' OR length(NEW.tag) > 200 THEN
            RAISE EXCEPTION 'tag must have 1 to 200 characters' USING ERRCODE = 'check_violation';
        END IF;
        IF EXISTS (SELECT FROM memory_tags WHERE memory_id = come AND tag = NEW.tag) THEN
            -- Its unique index decides what follows, or nothing changes.
            RETURN NEW;
        END IF;
    END IF;
    FOREACH changed IN ARRAY array_remove(ARRAY[gone, nullif(come, gone)], NULL) LOOP
        UPDATE memories SET search = coalesce(search, ''::tsvector) || '·'::tsvector WHERE id = changed;
        INSERT INTO alma_words_due (kind, record_id) SELECT 'memory', id FROM memories WHERE id = changed
        ON CONFLICT DO NOTHING;
        UPDATE memory_versions SET diff_json = jsonb_build_object('tags', alma_tags(changed)) || diff_json
        WHERE kind = 'memory' AND memory_id = changed AND diff_json IS NOT NULL AND version_number = (
            SELECT max(version_number) FROM memory_versions WHERE kind = 'memory' AND memory_id = changed);
    END LOOP;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;

CREATE OR REPLACE FUNCTION alma_reserve(record_id text) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
-- Where memories are partitioned no index keeps ids unique: two writers of one id meet at the lock that ALMA takes.
BEGIN
    PERFORM pg_advisory_xact_lock(1, (
        SELECT coalesce(sum(get_byte(convert_to(record_id, 'UTF8'), i)), 0)::integer % 64
        FROM generate_series(0, octet_length(record_id) - 1) AS i));
    IF EXISTS (SELECT FROM memories WHERE id = record_id) THEN
        RAISE EXCEPTION 'memory_id %: there is a memory entry with this id', quote_literal(record_id)
            USING ERRCODE = 'unique_violation';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION alma_write_entry() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
-- INSERT, UPDATE and DELETE of memory_entries, as writes of memories.
DECLARE
    said text;
    rest jsonb;
BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM memories WHERE id = OLD.memory_id;
        RETURN OLD;
    END IF;
    IF NEW.content IS NULL OR jsonb_typeof(NEW.content) <> 'object' THEN
        RAISE EXCEPTION 'content must be a JSON object, its text under the key "text"'
            USING ERRCODE = CASE WHEN NEW.content IS NULL THEN 'not_null_violation' ELSE 'check_violation' END;
    END IF;
    IF NEW.memory_type IS NULL THEN
        RAISE EXCEPTION 'memory_type is required' USING ERRCODE = 'not_null_violation';
    END IF;
    IF TG_OP = 'INSERT' THEN
        NEW.priority := coalesce(NEW.priority, 5);
        NEW.text_content := coalesce(NEW.text_content, NEW.content ->> 'text');
        NEW.memory_id := coalesce(NEW.memory_id, replace(gen_random_uuid()::text, '-', ''));
        NEW.is_active := coalesce(NEW.is_active, true);
        NEW.created_at := coalesce(NEW.created_at, clock_timestamp());
        NEW.updated_at := coalesce(NEW.updated_at, NEW.created_at);
    ELSIF NEW.text_content IS NOT DISTINCT FROM OLD.text_content THEN
        NEW.text_content := NEW.content ->> 'text';
    END IF;
    IF NEW.text_content IS DISTINCT FROM NEW.content ->> 'text' THEN
        RAISE EXCEPTION 'text_content follows from content: write the text to content under the key "text"'
            USING ERRCODE = 'generated_always';
    END IF;
    IF NEW.priority IS NULL OR NEW.priority NOT BETWEEN 1 AND 10 THEN
        RAISE EXCEPTION 'priority must be from 1 to 10' USING ERRCODE = 'check_violation',
            CONSTRAINT = 'valid_priority';
    END IF;
    IF length(NEW.content::text) > 1048576 THEN
        RAISE EXCEPTION 'content must have at most 1,048,576 characters' USING ERRCODE = 'check_violation';
    END IF;
    said := CASE WHEN btrim(NEW.content ->> 'text', E' \t\n\r') <> '' THEN NEW.content ->> 'text'
        ELSE NEW.content::text END;
    rest := CASE WHEN said = NEW.content::text OR jsonb_typeof(NEW.content -> 'text') <> 'string' THEN NEW.content
        ELSE nullif(NEW.content - 'text', '{}') END;
    IF TG_OP = 'INSERT' THEN
        PERFORM alma_reserve(NEW.memory_id);
        -- It belongs to whom its session belongs to.
        INSERT INTO memories (id, session_id, user_id, project_id, memory_type, content, content_json, source_agent,
            created_at, updated_at, last_accessed_at, expires_at, importance_score, is_active)
        SELECT NEW.memory_id, NEW.session_id, whose.user_id, whose.project_id, NEW.memory_type, said, rest,
            NEW.source_agent, NEW.created_at, NEW.updated_at, NEW.created_at, NEW.expires_at,
            (NEW.priority - 1) / 9.0, NEW.is_active
        FROM (SELECT) AS one LEFT JOIN alma_sessions AS whose ON whose.id = NEW.session_id;
    ELSE
        UPDATE memories
        SET id = NEW.memory_id, session_id = NEW.session_id, memory_type = NEW.memory_type,
            content = CASE WHEN NEW.content = OLD.content THEN content ELSE said END,
            content_json = CASE WHEN NEW.content = OLD.content THEN content_json ELSE rest END,
            source_agent = NEW.source_agent, created_at = coalesce(NEW.created_at, created_at),
            updated_at = coalesce(NEW.updated_at, updated_at), expires_at = NEW.expires_at,
            importance_score = CASE WHEN NEW.priority = OLD.priority THEN importance_score
                ELSE (NEW.priority - 1) / 9.0 END,
            is_active = coalesce(NEW.is_active, is_active)
        WHERE id = OLD.memory_id
        RETURNING updated_at INTO NEW.updated_at;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION alma_write_vector() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path FROM CURRENT AS $$
-- INSERT, UPDATE and DELETE of vector_embeddings, as writes of alma_embeddings.
DECLARE
    length integer;
    known integer;
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM alma_embeddings WHERE id = OLD.embedding_id;
        PERFORM alma_mark('memory', OLD.memory_id, clock_timestamp());
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    IF NEW.memory_id IS NULL OR NEW.embedding IS NULL OR NEW.embedding_model IS NULL THEN
        RAISE EXCEPTION 'memory_id, embedding and embedding_model are required' USING ERRCODE = 'not_null_violation';
    END IF;
    PERFORM alma_require('memories', NEW.memory_id, 'memory_id');
    length := CASE pg_typeof(NEW.embedding)::text WHEN 'bytea' THEN octet_length(NEW.embedding::text::bytea) / 4
        ELSE vector_dims(NEW.embedding) END;
    INSERT INTO alma_embedding_models (model, dims) VALUES (NEW.embedding_model, length) ON CONFLICT DO NOTHING;
    SELECT dims INTO known FROM alma_embedding_models WHERE model = NEW.embedding_model;
    IF known <> length THEN
        RAISE EXCEPTION 'embedding has % dimensions, but vectors of model % have %', length, NEW.embedding_model, known
            USING ERRCODE = 'check_violation';
    END IF;
    INSERT INTO alma_embeddings (memory_type, memory_id, model, dims, embedding, created_at)
    VALUES ('memory', NEW.memory_id, NEW.embedding_model, length, NEW.embedding, coalesce(NEW.created_at, now()))
    RETURNING id, created_at INTO NEW.embedding_id, NEW.created_at;
    PERFORM alma_mark('memory', NEW.memory_id, clock_timestamp());
    RETURN NEW;
END $$;
